package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"grl/roles/command/simulate"
	"grl/roles/command/terminal"
	"grl/roles/fleet"
)

// Simulate returns the command that runs fleets in virtual time.
func Simulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Try a limit, a law or a fault on a fleet in virtual time",
		Long: `Run a fleet in virtual time, with the estimator, sums, law and coin that the roles
have, through a surge, a ramp, pulses, retries, a cut-off zone, a lost controller or
a trace of your own, and judge what was admitted. Several scenarios and laws, with
commas or "all", are compared.

--list says what the scenarios, the laws and the metrics are. The same flags, with
the same seed, give the same output; the first line of a table repeats it.`,
		Example: `  grl simulate
  grl simulate --law all --plot step.svg
  grl simulate --scenario failover,partition --hosts 1000 --node-link 80ms
  grl simulate --limits limits/ --scenario retry
  grl simulate --limits limits/ --trace yesterday.csv.gz`,
		Args: cobra.NoArgs,
	}
	f.add(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("scenario", fixedNames(fleet.Scenarios())) // the flags exist
	_ = cmd.RegisterFlagCompletionFunc("law", fixedNames(fleet.Laws()))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.list {
			_, err := io.WriteString(cmd.OutOrStdout(), simulate.List())
			return err
		}
		sections, err := f.sections(cmd)
		if err != nil {
			return err
		}
		return f.run(cmd, sections)
	}
	return cmd
}

func fixedNames(entries []fleet.Entry) cobra.CompletionFunc {
	names := []string{simulate.All}
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
}

// sections returns what the flags ask for.
func (f *simulateFlags) sections(cmd *cobra.Command) ([]*simulate.Section, error) {
	if err := f.check(cmd.Flags()); err != nil {
		return nil, wrongUse(err)
	}
	if err := f.readLimits(cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	if f.trace != "" {
		trace, err := simulate.ReadTrace(f.trace)
		if err != nil {
			return nil, wrongUse(err)
		}
		f.Trace, f.TracePath = trace, f.trace
	}
	sections, err := simulate.Plan(f.Options)
	if err != nil {
		return nil, wrongUse(err)
	}
	return sections, nil
}

// readLimits reads what --limits names. What does not hold is written to
// errOut, as by grl check.
func (f *simulateFlags) readLimits(errOut io.Writer) error {
	if f.limits == "" {
		return nil
	}
	checked, err := check([]string{f.limits}, "", nil)
	if err != nil {
		return wrongUse(err)
	}
	if !checked.OK {
		_ = checked.print(io.Discard, errOut, "table") // what matters is the exit code
		return &ExitError{Code: ExitWrongUse}
	}
	f.Limits, f.LimitsPath = checked.services, f.limits
	return nil
}

// run runs sections and writes what came of them: tables one by one, the other
// formats at the end.
func (f *simulateFlags) run(cmd *cobra.Command, sections []*simulate.Section) error {
	progress := terminal.NewLine(cmd.ErrOrStderr())
	defer progress.Clear()
	out := cmd.OutOrStdout()
	for i, s := range sections {
		err := s.Run(cmd.Context(), func(law string, at time.Duration) {
			progress.Show("%s, %s: %d s", s.Options.Scenario, law, int(at/time.Second))
		})
		if err != nil {
			return runError(err)
		}
		if f.output != "table" {
			continue
		}
		progress.Clear()
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := s.WriteTable(out); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	progress.Clear()
	if f.plot != "" {
		if err := writeFile(f.plot, func(w io.Writer) error { return simulate.WritePlot(w, sections) }); err != nil {
			return fmt.Errorf("write plot: %w", err)
		}
	}
	switch f.output {
	case "json":
		return simulate.WriteJSON(out, sections)
	case "yaml":
		return simulate.WriteYAML(out, sections)
	case "markdown":
		return simulate.WriteMarkdown(out, sections)
	default:
		return nil
	}
}

// runError maps what a fleet says to an exit code.
func runError(err error) error {
	switch {
	case errors.Is(err, fleet.ErrOptions):
		return wrongUse(err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	default:
		return err
	}
}

// writeFile makes a file of what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
