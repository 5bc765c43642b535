package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"grl/policy/backtest"
)

// The tables stand between these lines.
const (
	begin = "<!-- rlc-tables: written by task rlc-tables -->\n"
	end   = "<!-- rlc-tables: end -->\n"
)

// write puts the tables into a document.
func write(ctx context.Context, files []*backtest.File, document string) error {
	data, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, after, err := split(string(data))
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	tables, err := tables(ctx, files)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+tables+after), 0o666)
}

// split returns what is before the tables of a document and what is after them,
// each with its comment.
func split(text string) (before, after string, err error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", "", fmt.Errorf("the lines %q and %q are not there, in this order", begin, end)
	}
	return before + begin, end + after, nil
}

// tables runs all trials.
func tables(ctx context.Context, files []*backtest.File) (string, error) {
	trials := []trial{peakWeekly, peakRails, peakLive, peakUp, forecastFree, forecastRails, forecastLive}
	results := make([][]*backtest.Result, len(trials))
	for i, t := range trials {
		var err error
		if results[i], err = t.run(ctx, files); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString("\n### All series\n\n")
	row(&b, "policy", "FD within 0.1 %", "median H", "median T", "worst period within 1 %")
	rule(&b, 1, 4)
	for i, t := range trials {
		s := backtest.Summarize(results[i])
		row(&b, t.name, fmt.Sprintf("%d of %d", s.Within, s.Series), fixed(s.H), fixed(s.T), strconv.Itoa(calm(results[i])))
	}
	b.WriteString("\n### Series by series\n\n")
	row(&b, "series", "periods", "peak: FD", "worst period", "H (lowest)", "forecast: FD", "worst period", "H", "T", "T with rails")
	rule(&b, 1, 9)
	for i, peak := range results[1] {
		f, rails := results[4][i], results[5][i]
		row(&b, "`"+peak.Name+"`", strconv.Itoa(peak.Periods), percent(peak.FD, 3), percent(peak.FDWorst, 2),
			fixed(peak.H)+" ("+fixed(peak.HLowest)+")", percent(f.FD, 3), percent(f.FDWorst, 2), fixed(f.H), fixed(f.T), fixed(rails.T))
	}
	b.WriteString("\n`peak` is nightly with rails, `forecast` hourly without.\n")
	for _, part := range []struct {
		title, figure string
		trials        []trial
		value         func(*backtest.Result) float64
	}{
		{"The buffer that `peak` begins with, and its weight: nightly, with rails", "median H", priors(peakRails), headroom},
		{"The same, once a period, without rails", "median H", priors(peakWeekly), headroom},
		{"The margin of `forecast`", "median T", margins(), tightness},
	} {
		s, err := newStudy(ctx, files, part.trials, part.value)
		if err != nil {
			return "", err
		}
		s.table(&b, part.title, part.figure)
	}
	return b.String() + "\n", nil
}

func headroom(r *backtest.Result) float64 { return r.H }

func tightness(r *backtest.Result) float64 { return r.T }

// table writes what came of each value, and what the series say of values that
// were chosen without them.
func (s *study) table(b *strings.Builder, title, figure string) {
	out, chosen := s.leaveOneOut()
	fmt.Fprintf(b, "\n### %s\n\n", title)
	row(b, "value", "FD within 0.1 %", figure, "chosen without a series")
	rule(b, 1, 3)
	for i, t := range s.trials {
		sc := s.score(s.results[i])
		row(b, t.name, strconv.Itoa(sc.within), fixed(sc.figure), strconv.Itoa(chosen[i])+" times")
	}
	row(b, "chosen without the series that it is judged on", strconv.Itoa(out.within), fixed(out.figure), "")
}

// calm returns how many series have no period with more than 1 % dropped.
func calm(results []*backtest.Result) int {
	n := 0
	for _, r := range results {
		if r.FDWorst <= 0.01 {
			n++
		}
	}
	return n
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// rule writes the line below a heading: columns of words, then of numbers.
func rule(b *strings.Builder, words, numbers int) {
	b.WriteString("|" + strings.Repeat(" --- |", words) + strings.Repeat(" ---: |", numbers) + "\n")
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func fixed(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func percent(v float64, decimals int) string {
	return strconv.FormatFloat(100*v, 'f', decimals, 64) + " %"
}
