package law

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"grl/limiter"
)

func TestCellsAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cells
		model := make(map[limiter.CellID]int)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			id := limiter.CellID{Bucket: fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "cell"))}
			if i, ok := model[id]; ok && rapid.Bool().Draw(t, "forget") {
				c.Forget(i)
				delete(model, id)
				if _, ok := c.Find(id); ok {
					t.Fatalf("%v found after it was forgotten", id)
				}
				continue
			}
			i := c.Index(id)
			if before, ok := model[id]; ok && before != i {
				t.Fatalf("index %d of %v, which has %d", i, id, before)
			}
			for other, j := range model {
				if j == i && other != id {
					t.Fatalf("index %d of %v and of %v", i, id, other)
				}
			}
			model[id] = i
		}
		if c.Count() != len(model) || c.Len() > 7 {
			t.Fatalf("%d cells in %d indices, want %d in at most 7", c.Count(), c.Len(), len(model))
		}
		last := -1
		c.Each(func(i int, id limiter.CellID) {
			if model[id] != i || c.ID(i) != id || i <= last {
				t.Fatalf("each: %v at %d after %d, want it at %d", id, i, last, model[id])
			}
			last = i
			c.Forget(i)
		})
		if c.Count() != 0 {
			t.Fatalf("%d cells after all were forgotten", c.Count())
		}
	})
}

func BenchmarkEstimateStep(b *testing.B) {
	var e Estimate
	for b.Loop() {
		e.Step(10, Delta, T)
	}
}
