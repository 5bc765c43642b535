package fleet

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"grl/limiter"
)

const someTrace = `t_seconds,caller,procedure,status
0,shop,pay/Create,200
0.999,shop,pay/Create,200
1,till,pay/Create,500
3.5,shop,pay/List,-
`

func TestReadTrace(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader(someTrace))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		match limiter.Match
		want  []float64
	}{
		{limiter.Match{}, []float64{2, 1, 0, 1}},
		{limiter.Match{Caller: "shop"}, []float64{2, 0, 0, 1}},
		{limiter.Match{Procedure: "pay/C*"}, []float64{2, 1, 0, 0}},
		{limiter.Match{Caller: "till", Procedure: "pay/List"}, []float64{0, 0, 0, 0}},
	}
	for _, tt := range tests {
		if got := trace.Offered(tt.match); !slices.Equal(got, tt.want) {
			t.Errorf("offered to %+v: %v, want %v", tt.match, got, tt.want)
		}
		p := newProfile(trace.knots(tt.match))
		for second, want := range tt.want {
			at := time.Duration(second) * time.Second
			if got := p.between(at, at+time.Second); math.Abs(got-want) > 1e-9 {
				t.Errorf("rate of %+v in second %d: %v, want %v", tt.match, second, got, want)
			}
		}
	}
	if got := trace.callers(limiter.Match{}); !slices.Equal(got, []string{"shop", "till"}) {
		t.Errorf("callers %v, want shop and till: the larger one first", got)
	}
}

func TestReadTraceRefuses(t *testing.T) {
	head := "t_seconds,caller,procedure,status\n"
	for name, text := range map[string]string{
		"nothing": "", "no requests": head, "other columns": "time,caller,procedure,status\n1,a,b,c\n",
		"few columns": head + "1,a,b\n", "no time": head + "x,a,b,c\n", "not a number": head + "NaN,a,b,c\n",
		"negative": head + "-1,a,b,c\n", "never": head + "1e300,a,b,c\n",
	} {
		if _, err := ReadTrace(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestTraceIsReplayed: each bucket is offered what it matches, and callers with
// cells of their own what is theirs.
func TestTraceIsReplayed(t *testing.T) {
	var text strings.Builder
	text.WriteString("t_seconds,caller,procedure,status\n")
	for second := range 20 {
		for range 300 {
			text.WriteString(strings.Join([]string{strconv.Itoa(second), "shop", "pay/Create", "200"}, ",") + "\n")
		}
		for range 100 {
			text.WriteString(strings.Join([]string{strconv.Itoa(second), "till", "pay/List", "200"}, ",") + "\n")
		}
	}
	trace, err := ReadTrace(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	r := ran(t, Options{Scenario: Replay, Trace: trace, Hosts: 20, Configuration: []limiter.Service{{Name: "pay", Buckets: []limiter.Bucket{
		{Service: "pay", Name: "create", LimitRPS: 1e6, Match: limiter.Match{Procedure: "pay/Create"}},
		{Service: "pay", Name: "each", LimitRPS: 1e6, PerCaller: true, Match: limiter.Match{Caller: "*"}},
	}}}})
	want := map[limiter.CellID]float64{
		{Bucket: "pay/create"}: 6000, {Bucket: "pay/each", Caller: "shop"}: 6000, {Bucket: "pay/each", Caller: "till"}: 2000,
	}
	for _, c := range r.Cells {
		if got := float64(c.Counts.Offered); math.Abs(got-want[c.ID]) > 5*math.Sqrt(want[c.ID]) {
			t.Errorf("%v was offered %v, want about %v", c.ID, got, want[c.ID])
		}
	}
	if len(r.Cells) != len(want) {
		t.Errorf("%d cells, want %d", len(r.Cells), len(want))
	}
}
