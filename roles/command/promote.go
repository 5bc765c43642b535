package command

import (
	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
)

// Promote returns the command that enforces what is in shadow.
func Promote() *cobra.Command {
	var call calling
	var change changeFlags
	cmd := &cobra.Command{
		Use:   "promote SERVICE/BUCKET",
		Short: "Enforce a bucket in shadow, or make its candidate the limit",
		Long: `Enforce a bucket that is in shadow (behavior allow becomes deny), or make the
candidate of an enforced bucket its limit.`,
		Example: "  grl promote payments/each-caller --dry-run",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := change.check(); err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Config.Promote(remote.WithTimeout(cmd.Context(), applyTimeout), &grlv1.PromoteRequest{
				Bucket: args[0], Force: change.force, Reason: change.reason, DryRun: change.dryRun,
			})
			if err != nil {
				return refusedDryRun(err, change.dryRun)
			}
			return call.print(cmd.OutOrStdout(), answer.GetOutcome(), func() string {
				return outcomeText(answer.GetOutcome(), change.dryRun, "promoted in")
			})
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	change.add(cmd)
	return cmd
}
