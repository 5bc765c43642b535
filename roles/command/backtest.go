package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"grl/policy"
	"grl/policy/backtest"
	show "grl/roles/command/backtest"
	"grl/roles/command/terminal"
)

// Backtest returns the command that holds a policy against the past.
func Backtest() *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest [--series] FILE...",
		Short: "Hold a policy against past traffic: false drops and headroom",
		Long: `Compute limits as a policy would have computed them in the past, from what was
known then, and hold them against what was offered: rolling, a period after the
other. Of several series there is a line for each, and one for all.

  FD         share of the normal load that would have been dropped; WORST is that
             of the worst period
  H          mean limit of a period over the peak of its normal steps, the median;
             LOWEST is the lowest
  T          limit over the highest normal step hour by hour, the median
  ANOMALIES  share of the load of anomalies that would have been dropped

A series is a CSV file, or a gzipped one whose name ends in .gz: t_unix,count or
t_unix,rps, in the order of time. A meta.json beside it names the times that are
not normal: {"series": {NAME: {"anomalies": [[FROM, TO, KIND], …]}}}. --source takes
the past of a bucket from the controller or from a server like Prometheus instead.`,
		Example: `  grl backtest --series api_1h.csv.gz
  grl backtest --series api_1h.csv.gz --policy forecast --plot api.svg
  grl backtest --policy nightly.yaml --train 4w --test 1w --json --series *.csv.gz
  grl backtest --policy nightly --source history --bucket payments/checkout
  grl backtest --source prometheus --prometheus http://prometheus:9090 --bucket payments/checkout`,
	}
	f.call.connects(cmd)
	f.add(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveDefault)) // the flags exist
	_ = cmd.RegisterFlagCompletionFunc("bounds", cobra.FixedCompletions(boundsNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.series = append(f.series, args...) // what a shell makes of --series *.csv
		if err := f.check(cmd.Flags()); err != nil {
			return wrongUse(err)
		}
		return f.run(cmd)
	}
	return cmd
}

// kindNames returns the names of the kinds of policies.
func kindNames() []string {
	var names []string
	for _, k := range policy.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func boundsNames() []string {
	names := make([]string, 0, len(bounds))
	for _, b := range bounds {
		names = append(names, b.name)
	}
	return names
}

// run reads, tries and prints.
func (f *backtestFlags) run(cmd *cobra.Command) error {
	bar := terminal.NewBar(cmd.ErrOrStderr())
	defer bar.Clear()
	options, err := f.options(cmd)
	if err != nil {
		return err
	}
	showProgress(options, bar)
	results, err := backtest.All(cmd.Context(), options)
	bar.Clear()
	if err != nil {
		return backtestError(err)
	}
	if f.plot != "" {
		if err := writeFile(f.plot, func(w io.Writer) error { return show.WritePlot(w, results) }); err != nil {
			return fmt.Errorf("write plot: %w", err)
		}
	}
	if f.asJSON {
		return show.WriteJSON(cmd.OutOrStdout(), results)
	}
	return show.WriteTable(cmd.OutOrStdout(), results)
}

// options returns what is to be tried. What is odd in the past of it is said on
// the error output.
func (f *backtestFlags) options(cmd *cobra.Command) ([]backtest.Options, error) {
	tried, err := f.triedPolicy(cmd)
	if err != nil {
		return nil, err
	}
	files, err := f.files(cmd)
	if err != nil {
		return nil, err
	}
	var options []backtest.Options
	for _, file := range files {
		taught := tried.taught(file.Series, f.service())
		o := tried.options(taught)
		o.Name, o.Series, o.Highest, o.Anomalies = file.Name, taught, file.Highest, file.Anomalies
		options = append(options, o)
	}
	return options, nil
}

// service returns the service of --bucket; "" of files, which name none.
func (f *backtestFlags) service() string {
	service, _, _ := strings.Cut(f.bucket, "/")
	return service
}

// files reads what the policy is tried on.
func (f *backtestFlags) files(cmd *cobra.Command) ([]*backtest.File, error) {
	if f.source != "" {
		file, err := f.history(cmd, cmd.ErrOrStderr())
		return []*backtest.File{file}, err
	}
	var files []*backtest.File
	for _, path := range f.series {
		file, err := backtest.ReadFile(path, f.step)
		if err != nil {
			return nil, wrongUse(err)
		}
		if file.Repeated > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d rows have the time of the row before; the higher one counts\n", path, file.Repeated)
		}
		files = append(files, file)
	}
	return files, nil
}

// showProgress lets a bar show how far all of options together are, by their steps.
func showProgress(options []backtest.Options, bar *terminal.Bar) {
	var mu sync.Mutex // guards done
	done := make([]float64, len(options))
	total := 0.0
	for i := range options {
		steps := float64(len(options[i].Series.RPS))
		total += steps
		name := options[i].Name
		options[i].Progress = func(share float64) {
			mu.Lock()
			done[i] = share * steps
			sum := 0.0
			for _, d := range done {
				sum += d
			}
			mu.Unlock()
			bar.Show(sum/total, name)
		}
	}
}

// backtestError maps what a backtest says to an exit code.
func backtestError(err error) error {
	switch {
	case errors.Is(err, backtest.ErrOptions):
		return wrongUse(err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	default:
		return err
	}
}

// bounds are what --bounds takes.
var bounds = []struct {
	name   string
	bounds backtest.Bounds
}{{"rails", backtest.Rails}, {"live", backtest.Live}, {"none", backtest.Unbound}}

// parseBounds returns the bounds of a name.
func parseBounds(name string) (backtest.Bounds, error) {
	i := slices.Index(boundsNames(), name)
	if i < 0 {
		return 0, fmt.Errorf("--bounds %q: want %s", name, strings.Join(boundsNames(), ", "))
	}
	return bounds[i].bounds, nil
}
