package bucket

import (
	"cmp"
	"slices"
	"time"

	"grl/limiter"
	"grl/web/page"
)

// sum is the cells that a query looks at, together.
type sum struct {
	cells                                         []page.Cell
	offered, admitted, dropped, shadow, candidate float64 // requests per second
	// least and most are the limits of the cells, equal where they are; 0: none.
	least, most float64
	age         time.Duration // of the oldest directive; below 0: none spoke of a cell
	silent      bool          // all rates are the last known ones
	lacks       page.Silence  // what the rates lack
	state       page.CellState
}

// cells returns what the controller sees of the bucket that a query looks at.
func (s site) cells(q query) sum {
	var out []page.Cell
	for _, c := range s.Backend.Cells() {
		if c.Name == q.Name && c.Service == q.Service && c.Cap == "" &&
			(q.Instance == "" || c.Instance == q.Instance) && (q.Caller == "" || c.Caller == q.Caller) {
			out = append(out, c)
		}
	}
	seen := newSum(out)
	seen.lacks = page.SilenceIn(s.Backend, out)
	return seen
}

func newSum(cells []page.Cell) sum {
	s := sum{cells: cells, age: -1}
	live := false
	for i := range cells {
		c := &cells[i]
		s.offered += c.OfferedRPS
		s.admitted += c.AdmittedRPS
		s.dropped += c.DroppedRPS
		s.shadow += c.ShadowDroppedRPS
		s.candidate += c.CandidateDroppedRPS
		s.age = max(s.age, c.DirectiveAge)
		s.silent = s.silent || c.Silent
		live = live || c.OfferedRPS > 0 && !c.Silent
		s.state = max(s.state, c.State())
		if i == 0 {
			s.least, s.most = c.LimitRPS, c.LimitRPS
		}
		s.least, s.most = min(s.least, c.LimitRPS), max(s.most, c.LimitRPS)
	}
	s.silent = s.silent && !live
	slices.SortFunc(cells, func(a, b page.Cell) int {
		return cmp.Or(cmp.Compare(b.OfferedRPS, a.OfferedRPS), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Class, b.Class))
	})
	return s
}

// first returns one of the cells, which all have the name, match and behavior of
// the bucket.
func (s *sum) first() page.Cell {
	if len(s.cells) == 0 {
		return page.Cell{DirectiveAge: -1}
	}
	return s.cells[0]
}

// ratio is the share of offered that is dropped.
func (s *sum) ratio() float64 {
	if s.offered <= 0 {
		return 0
	}
	return s.dropped / s.offered
}

// virtual is what would be dropped and is not.
func (s *sum) virtual() float64 { return s.shadow + s.candidate }

// instances returns the regions or zones of the cells, by name; of a global
// bucket "".
func (s *sum) instances() []string {
	var out []string
	for i := range s.cells {
		out = append(out, s.cells[i].Instance)
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > 1 && out[0] == "" {
		out = out[1:] // of a bucket that nobody calls
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// gates returns how many limits the cells have: those that share one count once.
func (s *sum) gates(b *limiter.Bucket) int {
	seen := make(map[limiter.CellID]bool)
	for i := range s.cells {
		seen[gate(b, &s.cells[i])] = true
	}
	return len(seen)
}

// gate names what has the limit of a cell. Where the bucket is not known, each
// cell has one of its own, but for its class.
func gate(b *limiter.Bucket, c *page.Cell) limiter.CellID {
	id := limiter.CellID{Bucket: c.Bucket(), Instance: c.Instance, Caller: c.Caller}
	if b == nil {
		return id
	}
	return b.Gate(id)
}
