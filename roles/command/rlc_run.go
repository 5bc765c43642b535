package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

const (
	followEach = 500 * time.Millisecond // between two looks at a run
	// beginWithin is how long a run that was asked for may take to begin: a
	// configurator asks every two seconds, and finishes what it is at first.
	beginWithin = 5 * time.Minute
)

func rlcRun(call *calling) *cobra.Command {
	request := &grlv1.RequestRunRequest{}
	var wait bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Ask the configurator for a cycle now",
		Long: `Ask the configurator for a cycle now: of all buckets that have a policy, or of those of
one policy or service. --dry-run computes and records, and changes nothing. --wait
follows the run, and prints what it found.`,
		Example: "  grl rlc run --dry-run --service payments --wait",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			if err := attended(cmd.Context(), conn); err != nil {
				return err
			}
			answer, err := conn.RLC.RequestRun(cmd.Context(), request)
			if err != nil {
				return err
			}
			if !wait {
				return call.print(cmd.OutOrStdout(), answer, func() string {
					return terminal.Printable(fmt.Sprintf("asked for run %s: grl rlc runs shows it once it began\n", answer.GetRequestId()))
				})
			}
			return followRun(cmd, call, conn, answer.GetRequestId())
		},
	}
	call.prints(cmd)
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "compute and record, change nothing")
	cmd.Flags().StringVar(&request.Policy, "policy", "", "only buckets of this `policy`")
	cmd.Flags().StringVar(&request.Service, "service", "", "only buckets of this `service`")
	cmd.Flags().BoolVar(&wait, "wait", false, "follow the run to its end, and print what it found")
	return cmd
}

// attended returns an error if there is nobody who would run a cycle.
func attended(ctx context.Context, conn *remote.Conn) error {
	c, err := conn.RLC.GetConfigurator(ctx, &grlv1.GetConfiguratorRequest{})
	switch {
	case err != nil:
		return err
	case c.GetHolder() == "":
		return errors.New(nobodyAttends)
	case c.GetAbsent():
		return errors.New(configuratorLine(c))
	default:
		return nil
	}
}

// followRun waits for the run of a request to end, and prints it.
func followRun(cmd *cobra.Command, call *calling, conn *remote.Conn, request string) error {
	bar := terminal.NewBar(cmd.ErrOrStderr())
	run, err := awaitRun(cmd.Context(), conn, request, bar)
	bar.Clear()
	if err != nil {
		return err
	}
	return showRun(cmd, call, conn, &grlv1.GetRunRequest{Id: run.GetId()})
}

// awaitRun returns the run of a request once it has ended.
func awaitRun(ctx context.Context, conn *remote.Conn, request string, bar *terminal.Bar) (*grlv1.Run, error) {
	began := time.Now()
	tick := time.NewTicker(followEach)
	defer tick.Stop()
	for {
		list, err := conn.RLC.ListRuns(ctx, &grlv1.ListRunsRequest{RequestId: request})
		if err != nil {
			return nil, err
		}
		switch {
		case len(list.GetRuns()) == 0:
			if time.Since(began) > beginWithin {
				return nil, fmt.Errorf("the run has not begun after %s: grl rlc status shows what the configurator is at", span(beginWithin))
			}
			bar.Show(0, "waits for the configurator")
		case list.GetRuns()[0].GetState() != grlv1.Run_STATE_RUNNING:
			return list.GetRuns()[0], nil
		default:
			r := list.GetRuns()[0]
			bar.Show(float64(r.GetDone())/float64(max(r.GetBuckets(), 1)), fmt.Sprintf("%d of %s", r.GetDone(), count(int(r.GetBuckets()), "bucket")))
		}
		select {
		case <-ctx.Done():
			return nil, errors.New("interrupted; the run goes on: grl rlc runs shows it")
		case <-tick.C:
		}
	}
}
