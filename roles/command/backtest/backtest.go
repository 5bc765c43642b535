// Package backtest shows what came of a backtest: as a table, as JSON and as a
// picture. It is the part of `grl backtest` that knows nothing of flags.
package backtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"grl/policy/backtest"
	"grl/roles/command/terminal"
)

// document is what a machine reads of a result. What cannot be told is null.
type document struct {
	Series      string   `json:"series"`
	Policy      string   `json:"policy"`
	Periods     int      `json:"periods"`
	FD          *float64 `json:"fd"`
	FDWorst     *float64 `json:"fd_worst"`
	H           *float64 `json:"h"`
	T           *float64 `json:"t"`
	AnomalyDrop *float64 `json:"anomaly_drop"`
}

// WriteJSON writes results as objects, one on a line.
func WriteJSON(w io.Writer, results []*backtest.Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, r := range results {
		d := document{
			Series: r.Name, Policy: r.Policy, Periods: r.Periods,
			FD: known(r.FD), FDWorst: known(r.FDWorst), H: known(r.H), T: known(r.T), AnomalyDrop: known(r.AnomalyDrop),
		}
		if err := encoder.Encode(d); err != nil {
			return err
		}
	}
	return nil
}

func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// WriteTable writes results for people: a line for each and, of several, one for
// all.
func WriteTable(w io.Writer, results []*backtest.Result) error {
	t := terminal.Table{Columns: []string{"SERIES", "POLICY", ">PERIODS", ">FD", ">WORST", ">H", ">LOWEST", ">T", ">ANOMALIES"}}
	for _, r := range results {
		t.Add(r.Name, r.Policy, strconv.Itoa(r.Periods), percent(r.FD, 3), percent(r.FDWorst, 2),
			ratio(r.H), ratio(r.HLowest), ratio(r.T), percent(r.AnomalyDrop, 1))
	}
	text := t.String()
	if len(results) > 1 {
		text += "\n" + Line(backtest.Summarize(results)) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Line is what results have in common, in one line.
func Line(s backtest.Summary) string {
	return fmt.Sprintf("%d series: FD within %s on %d, median H %s, median T %s",
		s.Series, percent(backtest.Target, 1), s.Within, ratio(s.H), ratio(s.T))
}

// noFigure is the text of what cannot be told.
const noFigure = "–"

func percent(share float64, decimals int) string {
	if math.IsNaN(share) {
		return noFigure
	}
	return strconv.FormatFloat(100*share, 'f', decimals, 64) + " %"
}

func ratio(v float64) string {
	switch {
	case math.IsNaN(v):
		return noFigure
	case v >= 99.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}
