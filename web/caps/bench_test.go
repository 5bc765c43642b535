package caps

import (
	"fmt"
	"testing"
	"time"

	"grl/limiter"
	"grl/web/page"
)

// many are the cells of a fleet of 100,000 buckets.
func many() []page.Cell {
	cells := make([]page.Cell, 100_000)
	for i := range cells {
		cells[i] = page.Cell{
			Service: fmt.Sprintf("service-%d", i/100), Name: fmt.Sprintf("bucket-%d", i), Owner: "team", Behavior: limiter.Deny,
			Selects: limiter.Match{Caller: limiter.Pattern(fmt.Sprintf("caller-%d", i%100))}, LimitRPS: 10, OfferedRPS: 20, AdmittedRPS: 10, DroppedRPS: 10, Ratio: 0.5,
		}
	}
	return cells
}

// What is looked up in all cells for one effect.
func BenchmarkEffect(b *testing.B) {
	cells := many()
	q := request{Service: "service-999", Caller: "caller-99", Typed: "5", For: defaultSpan}
	for b.Loop() {
		own := cellsOf(cells, q.Service)
		f := forecast{Gate: q.gate(), OfferedRPS: 20, Known: true, DropShare: 0.75}
		f.settle(b.Context(), &q, own, time.Time{})
		if ownerOf(own) == "" || counting(own, &q) == nil || len(f.Effect.Facts) < 4 {
			b.Fatal("not found")
		}
	}
}
