package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
	"grl/web/diff"
)

// Diff returns the command that shows how limits files, or two revisions,
// differ. It exits with ExitNotHolds when they do.
func Diff() *cobra.Command {
	var call calling
	var paths []string
	var from, to uint64
	var prune bool
	cmd := &cobra.Command{
		Use:   "diff (-f FILE|DIR... | --from REVISION [--to REVISION])",
		Short: "Show how limits files, or two revisions, differ",
		Long: `Show, bucket by bucket, how limits files differ from the configuration that holds,
or, service by service, how two revisions do. The exit code is 3 when there is a
difference, and 0 when there is none.`,
		Example: "  grl diff -f limits/\n  grl diff --from 3 --to 5",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			revisions := cmd.Flags().Changed("from")
			if revisions == (len(paths) > 0) {
				return wrongUse(errors.New("name either limits files with -f, or a revision with --from"))
			}
			if cmd.Flags().Changed("to") && !revisions || prune && revisions {
				return wrongUse(errors.New("--to goes with --from, and --prune with -f"))
			}
			if revisions && from == 0 {
				return wrongUse(errors.New("--from 0: the first revision is 1"))
			}
			var files []*grlv1.LimitsFile
			if !revisions {
				var err error
				if files, err = readLimits(paths); err != nil {
					return err
				}
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			var differences []difference
			if revisions {
				differences, err = betweenRevisions(cmd, conn, from, to)
			} else {
				differences, err = fromHead(cmd, conn, files, prune)
			}
			if err != nil {
				return err
			}
			return printDifferences(cmd.OutOrStdout(), differences)
		},
	}
	call.connects(cmd)
	cmd.Flags().StringSliceVarP(&paths, "filename", "f", nil, "limits `file`, or directory of them; several by repeating")
	cmd.Flags().BoolVar(&prune, "prune", false, "services that no file names are removed")
	cmd.Flags().Uint64Var(&from, "from", 0, "`revision` to compare")
	cmd.Flags().Uint64Var(&to, "to", 0, "`revision` to compare it with (default: the present one)")
	return cmd
}

// difference is one text before and after.
type difference struct{ before, after, from, to string }

// fromHead returns how files differ from the configuration that holds.
func fromHead(cmd *cobra.Command, conn *remote.Conn, files []*grlv1.LimitsFile, prune bool) ([]difference, error) {
	answer, err := conn.Config.Apply(remote.WithTimeout(cmd.Context(), applyTimeout), &grlv1.ApplyRequest{Files: files, Prune: prune, DryRun: true})
	if err != nil {
		return nil, err
	}
	var out []difference
	for _, c := range answer.GetOutcome().GetChanges() {
		out = append(out, difference{
			before: c.GetBefore(), after: c.GetAfter(),
			from: fmt.Sprintf("%s (r%d)", c.GetBucket(), answer.GetOutcome().GetRevision().GetNumber()),
			to:   c.GetBucket() + " (files)",
		})
	}
	return out, nil
}

// betweenRevisions returns how two revisions differ.
func betweenRevisions(cmd *cobra.Command, conn *remote.Conn, from, to uint64) ([]difference, error) {
	ctx := remote.WithTimeout(cmd.Context(), applyTimeout)
	before, err := conn.Config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{Revision: from})
	if err != nil {
		return nil, err
	}
	after, err := conn.Config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{Revision: to})
	if err != nil {
		return nil, err
	}
	was, is := textsByName(before), textsByName(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	var out []difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			out = append(out, difference{
				before: was[name], after: is[name],
				from: fmt.Sprintf("%s (r%d)", name, before.GetRevision().GetNumber()),
				to:   fmt.Sprintf("%s (r%d)", name, after.GetRevision().GetNumber()),
			})
		}
	}
	return out, nil
}

// textsByName returns the files by the names of their services.
func textsByName(c *grlv1.GetConfigurationResponse) map[string]string {
	texts := make(map[string]string)
	for _, f := range c.GetFiles() {
		texts[strings.TrimSuffix(f.GetName(), ".yaml")] = string(f.GetData())
	}
	return texts
}

func printDifferences(w io.Writer, differences []difference) error {
	for _, d := range differences {
		o := diff.Options{
			From: terminal.Printable(d.from), To: terminal.Printable(d.to), Colours: terminal.Colours(w),
		}
		if _, err := io.WriteString(w, diff.Unified(terminal.Printable(d.before), terminal.Printable(d.after), o)); err != nil {
			return err
		}
	}
	if len(differences) > 0 {
		return &ExitError{Code: ExitNotHolds}
	}
	return nil
}
