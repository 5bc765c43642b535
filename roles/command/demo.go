package command

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"grl/roles/command/demo"
)

// Demo returns the command that shows grl at work on one machine.
func Demo() *cobra.Command {
	var seconds int
	var surge float64
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch real RPC traffic being held to a global limit, on this machine",
		Long: `Start a controller, two zones with an aggregator and three sidecars each, and a
small upstream, all in this process, on free ports of 127.0.0.1. Then replay a
minute of a real trace (the calls between the services of an online shop) through
the sidecars: for a third of the time at 3 times its speed, for a third --surge
times faster than that, then as before. The limit is twice the mean of the first
third.

What was offered, admitted and dropped is counted where the requests are sent, not
by grl. Ctrl-C ends the demo early. Nothing stays behind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seconds < demo.MinSeconds || seconds > demo.MaxSeconds {
				return wrongUse(fmt.Errorf("--seconds %d: want %d to %d", seconds, demo.MinSeconds, demo.MaxSeconds))
			}
			if !(surge >= demo.MinSurge && surge <= demo.MaxSurge) {
				return wrongUse(fmt.Errorf("--surge %v: want %d to %d", surge, demo.MinSurge, demo.MaxSurge))
			}
			out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
			o := demo.Options{
				Seconds: seconds, Surge: surge, Version: mainVersion(), Progress: out,
				Log: slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelError})),
			}
			if asJSON {
				o.Progress = errOut // nothing but the object on out
			}
			if verbose {
				o.Log = slog.New(slog.NewTextHandler(errOut, nil))
				o.Limits = func(file string) { fmt.Fprintf(errOut, "limits/shop.yaml:\n%s\n", file) }
			}
			result, err := demo.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printResult(out, result, asJSON)
		},
	}
	cmd.Flags().IntVar(&seconds, "seconds", 60, fmt.Sprintf("how long it takes, %d to %d", demo.MinSeconds, demo.MaxSeconds))
	cmd.Flags().Float64Var(&surge, "surge", 15, fmt.Sprintf("how many `times` faster the trace plays in the surge, %d to %d", demo.MinSurge, demo.MaxSurge))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object; progress goes to stderr")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the limits file, and what the roles log, on stderr")
	return cmd
}

// mainVersion returns the version of the module, "unknown" if the build did not
// record it.
func mainVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func printResult(out io.Writer, r *demo.Result, asJSON bool) error {
	if !asJSON {
		return r.Explain(out)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}
