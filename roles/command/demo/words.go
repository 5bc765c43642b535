package demo

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Explain writes what happened, for people.
func (r Result) Explain(w io.Writer) error {
	var b strings.Builder
	b.WriteString("\nWhat happened\n")
	if r.StoppedEarly {
		fmt.Fprintf(&b, "  Stopped early, after %d of %d seconds.\n", len(r.windows), seconds(r.plan.total))
	}
	r.explainLoad(&b)
	r.explainShadow(&b)
	r.explainErrors(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Result) explainLoad(b *strings.Builder) {
	third := seconds(r.plan.third)
	quiet := r.windows[:min(third, len(r.windows))]
	if len(quiet) > 0 {
		fmt.Fprintf(b, "  Before the surge the callers sent %s requests a second on average; the limit is %s. %s\n",
			rps(meanOffered(quiet)), rps(r.LimitRPS), dropsInWords(r.FalseDropsBefore))
	}
	if len(r.windows) > third {
		fmt.Fprintf(b, "  In the surge they sent up to %s a second through six sidecars in two zones.\n", rps(r.OfferedPeakRPS))
	}
	if r.SettleSeconds != nil {
		fmt.Fprintf(b, "  %s after it began, what was admitted was as near the limit as chance allows, and stayed there.\n", secondsInWords(*r.SettleSeconds))
	} else if r.AdmittedMeanRPS != nil {
		b.WriteString("  What was admitted did not settle at the limit before the surge ended.\n")
	}
	if r.AdmittedMeanRPS != nil {
		side, off := "above", *r.AdmittedMeanRPS/r.LimitRPS-1
		if off < 0 {
			side, off = "below", -off
		}
		fmt.Fprintf(b, "  From 1 s after it began to its end %s a second were admitted on average, %.1f%% %s the limit.\n", rps(*r.AdmittedMeanRPS), 100*off, side)
	}
	if len(r.windows) > 2*third {
		fmt.Fprintf(b, "  After the surge, %s dropped that need not have been, until the sidecars knew that it was over.\n", requestsWere(r.FalseDropsAfter))
	}
}

func meanOffered(windows []window) float64 {
	var sum int
	for _, w := range windows {
		sum += w.offered
	}
	return float64(sum) / float64(len(windows))
}

func dropsInWords(n int) string {
	if n == 0 {
		return "Nothing was dropped."
	}
	return fmt.Sprintf("%s dropped, and none should have been.", requestsWere(n))
}

// requestsWere returns "1 request was" or "1,234 requests were".
func requestsWere(n int) string {
	if n == 1 {
		return "1 request was"
	}
	return count(uint64(n)) + " requests were"
}

func secondsInWords(s float64) string {
	switch s {
	case 0:
		return "At once"
	case 1:
		return "One second"
	default:
		return number(s) + " seconds"
	}
}

func (r Result) explainShadow(b *strings.Builder) {
	if n := r.shadow[cellKey{bucket: bucketProducts}]; n > 0 {
		fmt.Fprintf(b, "  The shadow bucket %s dropped nothing; enforced, it would have dropped %s requests.\n", bucketProducts, count(n))
	}
	inOrder := func(x, y cellKey) int { return cmp.Compare(x.caller, y.caller) }
	for _, key := range slices.SortedFunc(maps.Keys(r.shadow), inOrder) {
		if key.bucket == bucketPerCaller {
			fmt.Fprintf(b, "  The bucket %s, in shadow too, has a limit of %s for each caller: %s would have lost %s requests.\n",
				bucketPerCaller, rps(r.plan.limits.perCaller), key.caller, count(r.shadow[key]))
		}
	}
}

func (r Result) explainErrors(b *strings.Builder) {
	failed := "None failed"
	if r.UpstreamErrors > 0 {
		failed = count(uint64(r.UpstreamErrors)) + " FAILED"
	}
	fmt.Fprintf(b, "  The sidecars decided %s requests. %s.\n", count(r.Decisions), failed)
	if r.LateRequests > 0 {
		fmt.Fprintf(b, "  This machine did not keep up: %s sent more than %v late, so the figures above are doubtful.\n",
			requestsWere(r.LateRequests), lateAfter)
	}
}
