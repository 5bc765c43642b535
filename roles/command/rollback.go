package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
)

// Rollback returns the command that goes back to an older revision.
func Rollback() *cobra.Command {
	var call calling
	var change changeFlags
	cmd := &cobra.Command{
		Use:   "rollback REVISION --reason TEXT",
		Short: "Make a revision that equals an older one",
		Long: `Make a new revision that equals an older one, in all zones at once. It ends a
rollout under way. grl get revisions lists them.`,
		Example: `  grl rollback 11 --reason "checkout was dropped"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			revision, err := parseRevision(args[0])
			if err != nil {
				return err
			}
			if err := needReason(change.reason); err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Config.Rollback(remote.WithTimeout(cmd.Context(), applyTimeout), &grlv1.RollbackRequest{
				Revision: revision, Force: change.force, Reason: change.reason, DryRun: change.dryRun,
			})
			if err != nil {
				return refusedDryRun(err, change.dryRun)
			}
			return call.print(cmd.OutOrStdout(), answer.GetOutcome(), func() string {
				return outcomeText(answer.GetOutcome(), change.dryRun, fmt.Sprintf("rolled back to r%d:", revision))
			})
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	change.add(cmd)
	return cmd
}

// parseRevision reads "12" or "r12".
func parseRevision(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "r"), 10, 64)
	if err != nil || n == 0 {
		return 0, wrongUse(fmt.Errorf("%q is no revision like 12 or r12", text))
	}
	return n, nil
}
