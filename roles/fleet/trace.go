package fleet

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"grl/limiter"
)

// Trace is what was requested of something in the past, second by second.
type Trace struct {
	pairs   []pair // in the order in which they first came
	seconds int
}

// pair is what one caller requested of one procedure.
type pair struct {
	caller, procedure string
	counts            map[int]float64 // second → requests
}

// mostTraceSeconds bounds what a typing error in a time may cost: a month.
const mostTraceSeconds = 31 * 24 * 3600

func traceColumns() []string { return []string{"t_seconds", "caller", "procedure", "status"} }

// ReadTrace reads a CSV file with a line of names and the columns t_seconds,
// caller, procedure and status: a line for each request.
func ReadTrace(r io.Reader) (*Trace, error) {
	in := csv.NewReader(bufio.NewReader(r))
	in.FieldsPerRecord, in.ReuseRecord = 4, true
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("read trace: line 1: %w", err)
	}
	if !slices.Equal(head, traceColumns()) {
		return nil, fmt.Errorf("read trace: line 1 is %q, not %q", head, traceColumns())
	}
	t := &Trace{}
	index := make(map[[2]string]int)
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read trace: %w", err)
		}
		at, err := strconv.ParseFloat(row[0], 64)
		if err != nil || !(at >= 0 && at < mostTraceSeconds) {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("read trace: line %d: t_seconds %q is not between 0 and %d", line, row[0], mostTraceSeconds)
		}
		i, ok := index[[2]string{row[1], row[2]}]
		if !ok {
			i = len(t.pairs)
			t.pairs = append(t.pairs, pair{row[1], row[2], make(map[int]float64)})
			index[[2]string{row[1], row[2]}] = i
		}
		second := int(math.Floor(at))
		t.pairs[i].counts[second]++
		t.seconds = max(t.seconds, second+1)
	}
	if t.seconds == 0 {
		return nil, errors.New("read trace: no requests")
	}
	return t, nil
}

// Seconds returns the length of the trace.
func (t *Trace) Seconds() int { return t.seconds }

// Offered returns what was requested in each second of those that m matches.
func (t *Trace) Offered(m limiter.Match) []float64 {
	out := make([]float64, t.seconds)
	for i := range t.pairs {
		p := &t.pairs[i]
		if !m.Caller.Match(p.caller) || !m.Procedure.Match(p.procedure) {
			continue
		}
		for second, n := range p.counts {
			out[second] += n
		}
	}
	return out
}

// callers returns the largest callers of those that m matches.
func (t *Trace) callers(m limiter.Match) []string {
	sums := make(map[string]float64)
	for i := range t.pairs {
		if p := &t.pairs[i]; m.Caller.Match(p.caller) && m.Procedure.Match(p.procedure) {
			for _, n := range p.counts {
				sums[p.caller] += n
			}
		}
	}
	out := slices.Sorted(maps.Keys(sums))
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
	return out[:min(len(out), mostTraceCallers)]
}

// knots returns the rate of what m matches: constant within each second.
func (t *Trace) knots(m limiter.Match) []Knot {
	var out []Knot
	for second, n := range t.Offered(m) {
		at := time.Duration(second) * time.Second
		if len(out) > 0 && out[len(out)-1].RPS == n {
			continue
		}
		if len(out) > 0 {
			out = append(out, Knot{at, out[len(out)-1].RPS})
		}
		out = append(out, Knot{at, n})
	}
	return append(out, Knot{time.Duration(t.seconds) * time.Second, out[len(out)-1].RPS})
}
