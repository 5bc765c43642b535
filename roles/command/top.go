package command

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

const (
	topEach = time.Second // between two looks
	topRows = 50          // where there is no terminal to fit into
)

// Top returns the command that shows the buckets that drop the most, live.
func Top() *cobra.Command {
	var call calling
	var service string
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the buckets that drop the most, then those that are offered the most",
		Long: `Show the cells that drop the most, then those that are offered the most, anew each
second. q ends it. Without a terminal, or with --once, it prints one table.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			request := &grlv1.ListBucketsRequest{Service: service, PageSize: topRows, Order: grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_DROPPED}
			in, out := cmd.InOrStdin(), cmd.OutOrStdout()
			if format, _ := call.format(); !once && format == "table" && terminal.Asks(in, out) {
				return watch(cmd.Context(), conn, request, in.(*os.File), out.(*os.File))
			}
			list, err := conn.View.ListBuckets(cmd.Context(), request)
			if err != nil {
				return err
			}
			return call.print(out, list, func() string { return topText(list) })
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	cmd.Flags().StringVar(&service, "service", "", "only buckets of this `service`")
	cmd.Flags().BoolVar(&once, "once", false, "print one table")
	return cmd
}

// watch shows the table until q is pressed, or ctx ends.
func watch(ctx context.Context, conn *remote.Conn, r *grlv1.ListBucketsRequest, in, out *os.File) error {
	list, err := conn.View.ListBuckets(ctx, r)
	if err != nil {
		return err
	}
	screen, err := terminal.OpenScreen(in, out)
	if err != nil {
		return err
	}
	defer screen.Close()
	tick := time.NewTicker(topEach)
	defer tick.Stop()
	remark := ""
	for {
		if err := screen.Draw(fmt.Sprintf("%s  %s  q ends%s\n\n%s", conn.URL, time.Now().Format(time.TimeOnly), remark, topText(list))); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key, more := <-screen.Keys():
			if !more || key == 'q' || key == 'Q' || key == ctrlC || key == ctrlD {
				return nil
			}
		case <-tick.C:
			r.PageSize = uint32(max(1, screen.Rows()-4)) // what is above the rows
			next, err := conn.View.ListBuckets(remote.WithTimeout(ctx, topEach), r)
			remark = ""
			if err != nil {
				remark = "  not up to date: " + terminal.Printable(err.Error())
				continue
			}
			list = next
		}
	}
}

// Keys that a raw terminal passes on in place of signals.
const (
	ctrlC = 3
	ctrlD = 4
)

func topText(list *grlv1.ListBucketsResponse) string {
	t := terminal.Table{Columns: []string{"bucket", "cell", "behavior", ">limit", ">offered", ">admitted", ">dropped", ">shadow", ">drop", ">hosts"}}
	sum := func(b *grlv1.BucketView, rps float64) string {
		return atLeast(rps, b.GetSilentZones(), list.GetSilent())
	}
	for _, b := range list.GetBuckets() {
		t.Add(b.GetBucket(), cellText(b), behaviorText(b), gateText(b), sum(b, b.GetOfferedRps()), sum(b, b.GetAdmittedRps()),
			sum(b, b.GetDroppedRps()), sum(b, b.GetShadowDroppedRps()), share(b.GetDropRatio()), countText(b.GetHosts()))
	}
	text := t.String()
	if hidden := int(list.GetTotal()) - len(list.GetBuckets()); hidden > 0 {
		text += fmt.Sprintf("… and %d more\n", hidden)
	}
	return text + terminal.Printable(silentText(list.GetSilent()))
}
