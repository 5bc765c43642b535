package law

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// said is one report of a child of one of its numbers.
type said struct {
	child, number int
	sequence      int
	rate          Rate
	counts        Counts
}

func drawRate(t *rapid.T, label string) Rate {
	r := Rate{Offered: MicroRPS(rapid.Uint64Range(0, MaxRPS*1e6).Draw(t, label))}
	if r.Offered > 0 {
		r.Hosts = 1
	}
	return r
}

// drawReports draws what children say, in order, with counts that only grow.
func drawReports(t *rapid.T, children, numbers int) []said {
	counts := make([][]Counts, children)
	for i := range counts {
		counts[i] = make([]Counts, numbers)
	}
	var out []said
	for sequence := range rapid.IntRange(1, 60).Draw(t, "reports") {
		child, number := rapid.IntRange(0, children-1).Draw(t, "child"), rapid.IntRange(0, numbers-1).Draw(t, "number")
		n := &counts[child][number]
		offered := rapid.Uint64Range(0, 1000).Draw(t, "offered")
		dropped := rapid.Uint64Range(0, offered).Draw(t, "dropped")
		n.Offered += offered
		n.Dropped += dropped
		n.ShadowDropped += rapid.Uint64Range(0, offered-dropped).Draw(t, "shadow")
		out = append(out, said{child, number, sequence, drawRate(t, "rate"), *n})
	}
	return out
}

// foldAll folds reports into a new sum, refusing those that are older than one
// of the same child and number, as the owner of a stream does.
func foldAll(reports []said, children, numbers int) Sum {
	var s Sum
	s.Grow(numbers)
	kids := make([]Child, children)
	last := make(map[[2]int]int)
	for i := range kids {
		for number := range numbers {
			kids[i].Name(number, Counts{})
		}
	}
	for _, r := range reports {
		key := [2]int{r.child, r.number}
		if seen, ok := last[key]; ok && r.sequence <= seen {
			continue
		}
		last[key] = r.sequence
		s.Fold(&kids[r.child], uint32(r.number), r.rate, r.counts, false)
	}
	return s
}

// Property 9, and E4: whatever the order, repeats and losses, the sum is that
// of what each child said last.
func TestSumIsOfTheLastReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const children, numbers = 3, 4
		reports := drawReports(t, children, numbers)
		var want Sum
		want.Grow(numbers)
		last := make(map[[2]int]said)
		for _, r := range reports {
			last[[2]int{r.child, r.number}] = r
		}
		for _, r := range last {
			want.rates[r.number].Offered += r.rate.Offered
			want.rates[r.number].Hosts += r.rate.Hosts
			want.counts[r.number].Offered += r.counts.Offered
			want.counts[r.number].Dropped += r.counts.Dropped
			want.counts[r.number].ShadowDropped += r.counts.ShadowDropped
		}

		shuffled := rapid.Permutation(append(slices.Clone(reports), reports...)).Draw(t, "order")
		for name, order := range map[string][]said{"in order": reports, "shuffled and doubled": shuffled} {
			got := foldAll(order, children, numbers)
			for cell := range numbers {
				if got.Rate(cell) != want.Rate(cell) || got.Counts(cell) != want.Counts(cell) {
					t.Fatalf("%s: cell %d: %+v %+v, want %+v %+v", name, cell, got.Rate(cell), got.Counts(cell), want.Rate(cell), want.Counts(cell))
				}
			}
		}
	})
}

func TestSumReturnsWhatIsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sum
		s.Grow(2)
		var a, b Child
		a.Name(1, Counts{})
		b.Name(1, Counts{})
		var total Counts
		var fed, at Counts
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			child := &a
			if rapid.Bool().Draw(t, "b says the same") {
				child = &b
			}
			if rapid.IntRange(0, 5).Draw(t, "reset") == 0 && child == &a {
				at = Counts{} // the host forgot the cell, and counted more anew
				if fed.Offered > 0 {
					at.Offered = rapid.Uint64Range(0, fed.Offered-1).Draw(t, "anew")
				}
			} else {
				at = fed
				at.Offered += rapid.Uint64Range(0, 9).Draw(t, "offered")
			}
			if child == &b { // b stands still
				if more := s.Fold(&b, 0, Rate{}, Counts{}, false); more != (Counts{}) {
					t.Fatalf("%+v more of a child that counted nothing", more)
				}
				continue
			}
			want := at.Offered
			if at.Offered >= fed.Offered {
				want -= fed.Offered
			}
			fed = at
			more := s.Fold(&a, 0, Rate{}, at, false)
			if more.Offered != want || more.Late != 0 {
				t.Fatalf("%+v more, want %d offered", more, want)
			}
			total.Offered += more.Offered
			if s.Counts(1) != total {
				t.Fatalf("counts %+v, want %+v", s.Counts(1), total)
			}
		}
	})
}

// Rates that are told between two reports replace the last ones, in the sum or
// out of it, and no count moves.
func TestSumFoldsRatesAlone(t *testing.T) {
	var s Sum
	s.Grow(2)
	var a, b Child
	a.Name(1, Counts{})
	b.Name(1, Counts{})
	s.Fold(&a, 0, Rate{Offered: 10, Hosts: 1}, Counts{Offered: 5}, false)
	s.Fold(&b, 0, Rate{Offered: 100, Hosts: 1}, Counts{Offered: 7}, false)
	s.FoldRate(&a, 0, Rate{Offered: 30, Hosts: 1})
	s.FoldRate(&a, 0, Rate{Offered: 30, Hosts: 1})
	if got := s.Rate(1); got != (Rate{Offered: 130, Hosts: 2}) {
		t.Errorf("sum %+v, want 130 of 2", got)
	}
	s.Leave(&a)
	s.FoldRate(&a, 0, Rate{})
	s.FoldRate(&b, 0, Rate{Offered: 90, Hosts: 1})
	if got := s.Rate(1); got != (Rate{Offered: 90, Hosts: 1}) {
		t.Errorf("sum %+v while one is out, want 90 of 1", got)
	}
	s.Return(&a)
	if got := s.Rate(1); got != (Rate{Offered: 90, Hosts: 1}) {
		t.Errorf("sum %+v, want 90 of 1: the other said 0 meanwhile", got)
	}
	if more := s.Fold(&a, 0, Rate{Offered: 1, Hosts: 1}, Counts{Offered: 9}, false); more != (Counts{Offered: 4}) || s.Counts(1) != (Counts{Offered: 16}) {
		t.Errorf("counts %+v more, %+v in all, want 4 and 16", more, s.Counts(1))
	}
}

func TestSumGoesOnFromWhatWasConfirmed(t *testing.T) {
	var s Sum
	s.Grow(1)
	var c Child
	c.Name(0, Counts{Offered: 100, Dropped: 10})
	more := s.Fold(&c, 0, Rate{}, Counts{Offered: 130, Dropped: 11}, true)
	if want := (Counts{Offered: 30, Dropped: 1, Late: 30}); more != want || s.Counts(0) != want {
		t.Errorf("counted %+v, sum %+v, want %+v", more, s.Counts(0), want)
	}
}

func TestSumLeaveAndReturn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const children, numbers = 3, 4
		var s Sum
		s.Grow(numbers)
		kids := make([]Child, children)
		for i := range kids {
			for number := range numbers {
				kids[i].Name(number, Counts{})
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := &kids[rapid.IntRange(0, children-1).Draw(t, "child")]
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.Leave(c)
			case 1:
				s.Return(c)
			default:
				s.Fold(c, uint32(rapid.IntRange(0, numbers-1).Draw(t, "number")), drawRate(t, "rate"), Counts{}, false)
			}
			for cell := range numbers {
				var want Rate
				for i := range kids {
					if r, _ := kids[i].Said(uint32(cell)); !kids[i].Out() {
						want.Offered += r.Offered
						want.Hosts += r.Hosts
					}
				}
				if got := s.Rate(cell); got != want {
					t.Fatalf("cell %d: %+v, want that of the children which are in, %+v", cell, got, want)
				}
			}
		}
	})
}

func TestSumForgetsACellForAnotherOne(t *testing.T) {
	var s Sum
	s.Grow(1)
	var c Child
	c.Name(0, Counts{})
	s.Fold(&c, 0, Rate{Offered: 5, Hosts: 1}, Counts{Offered: 50}, false)
	c.Forget(func(cell int) bool { return cell == 0 })
	s.Forget(0)
	if got := c.Cell(0); got != -1 {
		t.Fatalf("number 0 is of cell %d after it was forgotten, want -1", got)
	}
	// Another cell gets the index; then the child speaks of the first one again,
	// which gets a new index. Its counter went on.
	c.Name(0, Counts{})
	s.Fold(&c, 1, Rate{Offered: 7, Hosts: 1}, Counts{Offered: 3}, false)
	s.Grow(2)
	c.Rename(0, 1)
	s.Fold(&c, 0, Rate{Offered: 6, Hosts: 1}, Counts{Offered: 52}, false)
	if got, want := s.Rate(0), (Rate{Offered: 7, Hosts: 1}); got != want {
		t.Errorf("other cell: %+v, want %+v", got, want)
	}
	if got, want := s.Counts(1), (Counts{Offered: 2}); got != want {
		t.Errorf("cell that came back: counted %+v, want %+v", got, want)
	}
	if got, want := s.Rate(1), (Rate{Offered: 6, Hosts: 1}); got != want {
		t.Errorf("cell that came back: %+v, want %+v", got, want)
	}
}

func TestSumForgottenChildLeavesNothing(t *testing.T) {
	var s Sum
	s.Grow(2)
	var c Child
	c.Name(0, Counts{})
	c.Name(1, Counts{})
	s.Fold(&c, 0, Rate{Offered: 5, Hosts: 1}, Counts{}, false)
	s.Fold(&c, 1, Rate{Offered: 6, Hosts: 1}, Counts{}, false)
	c.Forget(func(cell int) bool { return cell == 0 })
	s.Forget(0)
	s.Leave(&c)
	if s.Rate(0) != (Rate{}) || s.Rate(1) != (Rate{}) {
		t.Errorf("after all left: %+v %+v, want nothing", s.Rate(0), s.Rate(1))
	}
	s.Return(&c)
	if got, want := s.Rate(1), (Rate{Offered: 6, Hosts: 1}); s.Rate(0) != (Rate{}) || got != want {
		t.Errorf("after it returned: %+v %+v, want nothing and %+v", s.Rate(0), got, want)
	}
}

func TestSumOfCellsNobodyNamed(t *testing.T) {
	var s Sum
	if s.Rate(7) != (Rate{}) || s.Counts(7) != (Counts{}) {
		t.Error("a cell beyond all has a sum")
	}
	s.Forget(7)
	s.Grow(0)
}

// However often a child names a cell, and by whichever of its numbers it speaks
// of it, the cell's sum has what the child said last, once.
func TestChildIsOnceInACell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 3
		var s Sum
		s.Grow(cells)
		var c, other Child
		var of []int // number → cell that it named
		var want [cells]Rate
		for cell := range cells {
			other.Name(cell, Counts{})
			s.Fold(&other, uint32(cell), Rate{Offered: 7, Hosts: 1}, Counts{}, false)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				cell := rapid.IntRange(-1, cells-1).Draw(t, "cell")
				c.Name(cell, Counts{})
				of = append(of, cell)
			case 1:
				s.Leave(&c)
			case 2:
				s.Return(&c)
			default:
				if len(of) == 0 {
					continue
				}
				number := rapid.IntRange(0, len(of)-1).Draw(t, "number")
				cell := of[number]
				if cell < 0 {
					continue
				}
				if c.Cell(uint32(number)) < 0 {
					c.Rename(uint32(number), cell)
				}
				want[cell] = drawRate(t, "rate")
				s.Fold(&c, uint32(number), want[cell], Counts{}, false)
			}
			for cell, own := range want {
				sum := Rate{Offered: 7, Hosts: 1}
				if !c.Out() {
					sum = Rate{Offered: own.Offered + 7, Hosts: own.Hosts + 1}
				}
				if got := s.Rate(cell); got != sum {
					t.Fatalf("cell %d: %+v, want %+v", cell, got, sum)
				}
			}
		}
	})
}
