package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

// switchFlags say what a command of the kill switch is about.
type switchFlags struct {
	all, here                  bool
	reason                     string
	file, stateDir, configFile string
	switchFile                 func(config string) (string, error)
}

func (f *switchFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "all services")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit")
	cmd.Flags().BoolVar(&f.here, "here", false, "only this host, by a file: needs no control plane")
	cmd.Flags().StringVar(&f.file, "file", "", "with --here: the `file`, as client.switch_file says")
	cmd.Flags().StringVar(&f.stateDir, "state-dir", "", "with --here: the `directory`, as client.state_dir says")
	cmd.Flags().StringVar(&f.configFile, "config", "", "with --here: the grl.toml `file` of the client (default: grl.toml if there is one)")
}

// scope returns the service that args and the flags name, "" for all.
func (f *switchFlags) scope(cmd *cobra.Command, args []string) (string, error) {
	service := strings.Join(args, "")
	if err := atMostOne(cmd, "file", "state-dir", "config"); err != nil {
		return "", err
	}
	switch {
	case f.all == (service != ""):
		return "", wrongUse(errors.New("name either a service or --all"))
	case !f.here && (f.file != "" || f.stateDir != "" || f.configFile != ""):
		return "", wrongUse(errors.New("--file, --state-dir and --config go with --here"))
	case f.here && service != "":
		if err := limiter.CheckName(service); err != nil {
			return "", wrongUse(fmt.Errorf("service: %w", err))
		}
	case !f.here:
		return service, needReason(f.reason)
	}
	return service, nil
}

// Disable returns the command that stops all dropping; switchFile returns the
// switch file of the client that a grl.toml sets up, "" meaning as serve finds
// it.
func Disable(switchFile func(config string) (string, error)) *cobra.Command {
	var call calling
	f := switchFlags{switchFile: switchFile}
	cmd := &cobra.Command{
		Use:   "disable (--all | SERVICE) (--reason TEXT | --here)",
		Short: "The kill switch: stop all dropping, of a service or of everything",
		Long: `Stop all dropping, of one service or of everything, at every client within a second.
Requests are still counted, and what would have been dropped is counted as shadow
drops. Caps and blocks are stopped too. grl enable undoes it.

--here does it on this host alone, without a control plane: it writes the switch file
that the client looks at each second.`,
		Example: `  grl disable payments --reason "INC-123"
  grl disable --all --here`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := f.scope(cmd, args)
			if err != nil {
				return err
			}
			if f.here {
				return disableHere(cmd.OutOrStdout(), &f, service)
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Incident.Disable(cmd.Context(), &grlv1.DisableRequest{Service: service, All: f.all, Reason: f.reason})
			if err != nil {
				return err
			}
			return printSwitch(cmd, &call, answer, answer.GetAllDisabled(), answer.GetDisabledServices())
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	f.add(cmd)
	return cmd
}

// Enable returns the command that undoes Disable.
func Enable(switchFile func(config string) (string, error)) *cobra.Command {
	var call calling
	f := switchFlags{switchFile: switchFile}
	cmd := &cobra.Command{
		Use:   "enable (--all | SERVICE) (--reason TEXT | --here)",
		Short: "Undo grl disable",
		Long: `Undo grl disable. --all ends what --all began: a service that was disabled by its
name stays so. With --here, --all removes the switch file of this host, whatever it
says.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := f.scope(cmd, args)
			if err != nil {
				return err
			}
			if f.here {
				return enableHere(cmd.OutOrStdout(), &f, service)
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Incident.Enable(cmd.Context(), &grlv1.EnableRequest{Service: service, All: f.all, Reason: f.reason})
			if err != nil {
				return err
			}
			return printSwitch(cmd, &call, answer, answer.GetAllDisabled(), answer.GetDisabledServices())
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	f.add(cmd)
	return cmd
}

func printSwitch(cmd *cobra.Command, call *calling, m proto.Message, all bool, services []string) error {
	return call.print(cmd.OutOrStdout(), m, func() string { return terminal.Printable(disabledText(all, services)) + "\n" })
}

// disabledText says what drops nothing.
func disabledText(all bool, services []string) string {
	switch {
	case all:
		return "disabled: everything; nothing is dropped anywhere"
	case len(services) > 0:
		return "disabled: " + strings.Join(services, ", ")
	default:
		return "enabled: limits are enforced"
	}
}
