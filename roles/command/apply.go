package command

import (
	"errors"

	"github.com/spf13/cobra"

	"grl/limiter/limitsfile"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
)

// Apply returns the command that makes limits files the configuration.
func Apply() *cobra.Command {
	var call calling
	var change changeFlags
	var paths []string
	var base uint64
	var prune, now bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR...",
		Short: "Make limits files the configuration",
		Long: `Make limits files the configuration of the services they name: all of it, or, if
anything does not hold, nothing. Applying the same files again changes nothing.

What has changed since in the same buckets, by somebody else, is a conflict, and
both changes are shown. --base names the revision that the files were made from;
without it that is the one at which they were last applied.

A change that a guard rail refuses needs --force, with --reason, and an account with
role admin. A larger change goes out zone by zone; --now, with --force, takes it to
all at once.`,
		Example: `  grl apply -f limits/ --dry-run
  grl apply -f limits/ --reason "double the limit of checkout for the sale"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := change.check(); err != nil {
				return err
			}
			if now && !change.force {
				return wrongUse(errors.New("--now needs --force and --reason"))
			}
			files, err := readLimits(paths)
			if err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			request := &grlv1.ApplyRequest{
				Files: files, Prune: prune, DryRun: change.dryRun, Force: change.force, Now: now, Reason: change.reason,
			}
			if cmd.Flags().Changed("base") {
				request.Base = &base
			}
			answer, err := conn.Config.Apply(remote.WithTimeout(cmd.Context(), applyTimeout), request)
			if err != nil {
				return refusedDryRun(err, change.dryRun)
			}
			return call.print(cmd.OutOrStdout(), answer.GetOutcome(), func() string {
				return outcomeText(answer.GetOutcome(), change.dryRun, "applied")
			})
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	change.add(cmd)
	cmd.Flags().StringSliceVarP(&paths, "filename", "f", nil, "limits `file`, or directory of them; several by repeating")
	cmd.Flags().Uint64Var(&base, "base", 0, "`revision` that the files were made from")
	cmd.Flags().BoolVar(&prune, "prune", false, "remove the services that no file names")
	cmd.Flags().BoolVar(&now, "now", false, "to all zones at once, however large the change is")
	return cmd
}

func (f *changeFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.force, "force", false, "pass the guard rails")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check and compare, change nothing")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit")
}

// readLimits reads the limits files that paths name, without looking into them.
func readLimits(paths []string) ([]*grlv1.LimitsFile, error) {
	if len(paths) == 0 {
		return nil, wrongUse(errors.New("no limits files: name a file or directory with -f"))
	}
	sources, err := readSources(paths, "limits files")
	if err != nil {
		return nil, err
	}
	var errs limitsfile.Errors
	for _, s := range sources {
		if policyfile.Is(s.Data) {
			errs = append(errs, &limitsfile.Error{File: s.Name, Found: "a policy file", Expected: "a limits file (grl policy apply -f takes policy files)"})
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return filesOf(sources), nil
}
