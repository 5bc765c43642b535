// Command writetable writes the table of all laws in all scenarios into a
// document, between two comments that must be there:
//
//	go run ./roles/command/simulate/internal/writetable docs/control-law.md
//
// It runs in the folder of the module, and has the same table each time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"grl/roles/command/simulate"
)

// The table stands between these lines.
const (
	begin = "<!-- simulate-table: written by task simulate-table -->\n"
	end   = "<!-- simulate-table: end -->\n"
)

// seed of the table. It was not used when the law was tuned.
const seed = 2026

// trace is what the scenario of that name replays.
const trace = "roles/command/demo/testdata/rpc_shop_2022.csv.gz"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "writetable:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want one argument, the document")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	before, after, err := split(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	table, err := table(context.Background())
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(before+table+after), 0o666)
}

// split returns what is before the table of a document and what is after it,
// each with its comment.
func split(text string) (before, after string, err error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", "", fmt.Errorf("the lines %q and %q are not there, in this order", begin, end)
	}
	return before + begin, end + after, nil
}

// table runs all scenarios under all laws.
func table(ctx context.Context) (string, error) {
	t, err := simulate.ReadTrace(trace)
	if err != nil {
		return "", err
	}
	all := []string{simulate.All}
	sections, err := simulate.Plan(simulate.Options{Scenarios: all, Laws: all, Seed: seed, Trace: t, TracePath: trace})
	if err != nil {
		return "", err
	}
	for _, s := range sections {
		if err := s.Run(ctx, nil); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n`grl simulate --scenario all --law all --seed %d --trace %s --markdown`:\n\n", seed, trace)
	if err := simulate.WriteMarkdown(&b, sections); err != nil {
		return "", err
	}
	b.WriteString("\n")
	return b.String(), nil
}
