package command

import (
	"strconv"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

func getTraffic(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "traffic SERVICE",
		Short: "List who sent to a service, by hour",
		Long: `List, for each of the last hours, who sent the most to a service: callers of its
buckets or, if it has no limits, pairs of caller and procedure.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			traffic, err := conn.View.GetTraffic(cmd.Context(), &grlv1.GetTrafficRequest{Service: args[0]})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), traffic, func() string { return trafficTable(traffic.GetHours()) })
		},
	}
	call.prints(cmd)
	return cmd
}

func trafficTable(hours []*grlv1.TrafficHour) string {
	t := terminal.Table{Columns: []string{"hour", "bucket", "caller", "procedure", ">offered", ">dropped", ">shadow"}}
	number := func(n uint64) string { return thousands(strconv.FormatUint(n, 10)) }
	for _, h := range hours {
		hour := moment(h.GetStartMs())
		for _, b := range h.GetBuckets() {
			for _, c := range append(b.GetCallers(), b.GetRest()) {
				if c.GetOffered() > 0 {
					caller := c.GetCaller()
					if caller == "" {
						caller = "(others)"
					}
					t.Add(hour, b.GetBucket(), caller, "-", number(c.GetOffered()), number(c.GetDropped()), number(c.GetShadowDropped()))
				}
			}
		}
		for _, p := range h.GetPairs().GetPairs() {
			t.Add(hour, "-", dash(p.GetCaller()), dash(p.GetProcedure()), number(p.GetOffered()), "0", "0")
		}
		if rest := h.GetPairs().GetRestOffered(); rest > 0 {
			t.Add(hour, "-", "(others)", "-", number(rest), "0", "0")
		}
	}
	return t.String()
}
