package demo

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func readExcerpt(t *testing.T) []call {
	t.Helper()
	calls, err := readTrace(excerpt)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

func TestExcerptIsAMinuteOfTheTrace(t *testing.T) {
	calls := readExcerpt(t)
	if !slices.IsSortedFunc(calls, func(a, b call) int { return int(a.at - b.at) }) {
		t.Error("calls are not in the order of their times")
	}
	first, last := calls[0].at, calls[len(calls)-1].at
	if first < 0 || first > 2*time.Second || last < traceSpan-2*time.Second || last >= traceSpan {
		t.Errorf("calls are from %v to %v, want a minute", first, last)
	}
	if rps := float64(len(calls)) / traceSpan.Seconds(); rps < 95 || rps > 105 {
		t.Errorf("%.1f requests a second, want about 100", rps)
	}
	for i := 1; i < len(calls); i++ {
		if gap := calls[i].at - calls[i-1].at; gap > 2*time.Second {
			t.Errorf("gap of %v at %v, want those over 2s cut", gap, calls[i].at)
		}
	}
}

// A second of the demo plays three of the trace before its surge, and the limit
// is twice the mean: at most 1.6 times the mean leaves room for chance.
func TestExcerptIsEvenOverThreeSeconds(t *testing.T) {
	calls := readExcerpt(t)
	const window = 3 * time.Second
	most := 1.6 * float64(len(calls)) * window.Seconds() / traceSpan.Seconds()
	looped := slices.Clone(calls)
	for _, c := range calls {
		looped = append(looped, call{c.at + traceSpan, c.kind})
	}
	from := 0
	for to, c := range looped {
		for looped[from].at <= c.at-window {
			from++
		}
		if n := to - from + 1; float64(n) > most {
			t.Fatalf("%d calls in the 3s before %v, want at most %.0f", n, c.at, most)
		}
	}
}

func TestExcerptNamesProceduresAsRPCDoes(t *testing.T) {
	procedure := regexp.MustCompile(`^[a-z]+\.[A-Za-z]+/[A-Za-z]+$`)
	seen := map[kind]bool{}
	for _, c := range readExcerpt(t) {
		seen[c.kind] = true
		if !procedure.MatchString(c.kind.procedure) {
			t.Fatalf("procedure %q, want package.Service/Method", c.kind.procedure)
		}
	}
	for _, want := range []kind{
		{"frontend", "cartservice.CartService/GetCart"},
		{"outside", "frontend.Frontend/Recv"},
		{"recommendationservice", "productcatalogservice.ProductCatalogService/ListProducts"},
		{"checkoutservice", "paymentservice.PaymentService/Charge"},
	} {
		if !seen[want] {
			t.Errorf("no call of %v", want)
		}
	}
	if len(seen) != 19 {
		t.Errorf("%d pairs of caller and procedure, want the 19 of the whole trace", len(seen))
	}
}

func TestExcerptHasItsAttribution(t *testing.T) {
	text, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"IntelligentDDS/Nezha", "MIT License", "Copyright (c) 2023 IntelligentDDS", "The above copyright notice and this permission notice shall be included"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("testdata/README.md does not say %q", want)
		}
	}
}
