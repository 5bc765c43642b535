package backtest

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/policy/backtest"
)

var nan = math.NaN()

func TestWriteTable(t *testing.T) {
	results := []*backtest.Result{
		{Name: "api", Policy: "peak", Periods: 33, FD: 0.00021, FDWorst: 0.0056, H: 2.066, HLowest: 0.9, T: 167.9, AnomalyDrop: 0.117},
		{Name: "quiet", Policy: "peak", FD: nan, FDWorst: nan, H: nan, HLowest: nan, T: nan, AnomalyDrop: nan},
	}
	var b strings.Builder
	if err := WriteTable(&b, results); err != nil {
		t.Fatal(err)
	}
	want := `SERIES  POLICY  PERIODS       FD   WORST     H  LOWEST    T  ANOMALIES
api     peak         33  0.021 %  0.56 %  2.07    0.90  168     11.7 %
quiet   peak          0        –       –     –       –    –          –

2 series: FD within 0.1 % on 1, median H 2.07, median T 168
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	b.Reset()
	if err := WriteTable(&b, results[:1]); err != nil || strings.Contains(b.String(), "series:") {
		t.Errorf("the table of one series has a line for all: %v\n%s", err, &b)
	}
}

func TestWriteJSON(t *testing.T) {
	var b strings.Builder
	err := WriteJSON(&b, []*backtest.Result{
		{Name: "a<b", Policy: "peak", Periods: 2, FD: 0.001, FDWorst: 0.002, H: 1.5, HLowest: 1, T: 2, AnomalyDrop: nan},
		{Name: "c", Policy: "peak", FD: nan, FDWorst: nan, H: math.Inf(1), T: nan, AnomalyDrop: 0},
	})
	want := `{"series":"a<b","policy":"peak","periods":2,"fd":0.001,"fd_worst":0.002,"h":1.5,"t":2,"anomaly_drop":null}
{"series":"c","policy":"peak","periods":0,"fd":null,"fd_worst":null,"h":null,"t":null,"anomaly_drop":0}
`
	if diff := cmp.Diff(want, b.String()); diff != "" || err != nil {
		t.Errorf("JSON (-want +got), %v:\n%s", err, diff)
	}
}
