package command

import (
	"time"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
)

// Rollout returns the command that shows how far a change of the configuration
// is, and finishes it.
func Rollout() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show how far a change that goes out zone by zone is, or finish it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			fleet, err := conn.View.GetFleet(cmd.Context(), &grlv1.GetFleetRequest{})
			if err != nil {
				return err
			}
			rollout := fleet.GetRollout()
			if rollout == nil {
				rollout = &grlv1.Rollout{Revision: fleet.GetRevision(), State: grlv1.Rollout_STATE_DONE}
			}
			return call.print(cmd.OutOrStdout(), rollout, func() string { return rolloutTable(rollout) })
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	cmd.AddCommand(finishRollout(&call))
	return cmd
}

func rolloutTable(r *grlv1.Rollout) string {
	text := rolloutText(r)
	if r.GetState() == grlv1.Rollout_STATE_RUNNING && r.GetStepAtMs() > 0 {
		text += "\nthe last zone has had it for " + span(time.Since(time.UnixMilli(r.GetStepAtMs())))
	}
	return text + "\n"
}

func finishRollout(call *calling) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "finish --reason TEXT",
		Short: "Take the rollout to all zones that it has not reached",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needReason(reason); err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Config.FinishRollout(cmd.Context(), &grlv1.FinishRolloutRequest{Reason: reason})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), answer.GetRollout(), func() string { return rolloutTable(answer.GetRollout()) })
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	return cmd
}
