package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

// Status returns the command that shows the tree of nodes.
func Status() *cobra.Command {
	var call calling
	var hosts bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the tree of nodes: versions, revisions, staleness, bytes",
		Long: `Show the controller and the nodes below it, and what is not as usual: hosts that are
late, hold another revision or refused one; silent zones; a rollout under way; caps;
what is disabled; who the configurator is. --hosts lists all hosts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			fleet, err := conn.View.GetFleet(cmd.Context(), &grlv1.GetFleetRequest{})
			if err != nil {
				return err
			}
			caps, err := conn.Incident.ListCaps(cmd.Context(), &grlv1.ListCapsRequest{})
			// A controller of a region has none, and the tree matters more.
			configurator, _ := conn.RLC.GetConfigurator(cmd.Context(), &grlv1.GetConfiguratorRequest{})
			return printStatus(cmd, &call, status{fleet: fleet, caps: caps.GetCaps(), capsErr: err, configurator: configurator, hosts: hosts})
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	cmd.Flags().BoolVar(&hosts, "hosts", false, "list all hosts, not only those that are not as usual")
	return cmd
}

// status is what grl status shows.
type status struct {
	fleet *grlv1.GetFleetResponse
	caps  []*grlv1.CapView
	// capsErr is why they are not known, as at a controller of a region. The tree
	// is shown all the same.
	capsErr error
	hosts   bool // all of them
	// configurator is nil where it is not known.
	configurator *grlv1.GetConfiguratorResponse
}

func printStatus(cmd *cobra.Command, call *calling, s status) error {
	format, err := call.format()
	if err != nil {
		return err
	}
	if format == "table" {
		_, err := fmt.Fprint(cmd.OutOrStdout(), s.text())
		return err
	}
	fleet, err := jsonText(s.fleet)
	if err != nil {
		return err
	}
	caps, err := jsonText(&grlv1.ListCapsResponse{Caps: s.caps})
	if err != nil {
		return err
	}
	both := map[string]json.RawMessage{}
	for _, text := range [][]byte{fleet, caps} {
		if err := json.Unmarshal(text, &both); err != nil {
			return err
		}
	}
	if s.capsErr != nil {
		delete(both, "caps")
	}
	if s.configurator != nil {
		if both["configurator"], err = jsonText(s.configurator); err != nil {
			return err
		}
	}
	text, err := json.Marshal(both)
	if err != nil {
		return err
	}
	return printJSON(cmd.OutOrStdout(), text, format)
}

// text is the tree and what is not as usual.
func (s *status) text() string {
	return s.tree() + terminal.Printable(s.remarks())
}

// remarks are the lines below the tree.
func (s *status) remarks() string {
	f := s.fleet
	var lines []string
	lines = append(lines, silentLines(f.GetSilent())...)
	if f.GetLimitsRefused() != "" {
		lines = append(lines, "the limits directory is refused: "+f.GetLimitsRefused())
	}
	if r := f.GetRollout(); r != nil && r.GetState() != grlv1.Rollout_STATE_DONE {
		lines = append(lines, rolloutText(r))
	}
	if f.GetAllDisabled() || len(f.GetDisabledServices()) > 0 {
		lines = append(lines, disabledText(f.GetAllDisabled(), f.GetDisabledServices()))
	}
	if s.capsErr != nil {
		lines = append(lines, "caps are not known: "+s.capsErr.Error())
	}
	for _, c := range s.caps {
		end := "until " + moment(c.GetEndsAtMs())
		if c.GetCap().GetRemainingMs() <= 0 {
			end = "ended, ramps out"
		}
		lines = append(lines, fmt.Sprintf("cap %s on %s: %s %s (%s: %s)", c.GetCap().GetId(), capMatch(c.GetCap()), capGate(c.GetCap()),
			end, c.GetCap().GetAuthor(), c.GetCap().GetReason()))
	}
	if line := configuratorLine(s.configurator); line != "" {
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}
