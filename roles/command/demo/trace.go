package demo

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// excerpt is one minute of real traffic; testdata/README.md says whose.
//
//go:embed testdata/rpc_shop_2022.csv.gz
var excerpt []byte

// traceSpan is how long the excerpt is before it starts anew.
const traceSpan = time.Minute

// callers are the services behind the numbers of the trace.
var callers = map[string]string{
	"caller-001": "outside",
	"caller-002": "frontend",
	"caller-003": "recommendationservice",
	"caller-004": "checkoutservice",
}

// kind is what a request asks for and who asks.
type kind struct{ caller, procedure string }

// call is one request of the trace.
type call struct {
	at   time.Duration // from the start of the excerpt
	kind kind
}

// readTrace returns the calls of a gzipped CSV with the columns t_seconds,
// caller, procedure, status, in the order of their times.
func readTrace(gzipped []byte) ([]call, error) {
	z, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	var calls []call
	for i, row := range rows[1:] {
		seconds, err := strconv.ParseFloat(row[0], 64)
		if err != nil {
			return nil, fmt.Errorf("read trace: line %d: %w", i+2, err)
		}
		caller, known := callers[row[1]]
		if !known {
			return nil, fmt.Errorf("read trace: line %d: unknown caller %q", i+2, row[1])
		}
		calls = append(calls, call{
			at:   time.Duration(seconds * float64(time.Second)).Round(time.Millisecond),
			kind: kind{caller, procedureName(row[2])},
		})
	}
	return calls, nil
}

// procedureName turns what the trace calls cartservice/CartService/GetCart into
// cartservice.CartService/GetCart. The trace writes the calls that come in from
// outside as frontend/Frontend/Recv., with a dot.
func procedureName(traced string) string {
	return strings.Replace(strings.TrimSuffix(traced, "."), "/", ".", 1)
}
