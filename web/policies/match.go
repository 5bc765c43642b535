package policies

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"grl/limiter"
	"grl/policy"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// matched is what a policy computes, of the cells that there are.
type matched struct {
	cells   []page.Cell // the nearest to their limits first
	buckets int
	// elsewhere is how many more buckets it selects that other policies compute,
	// and first one of those.
	elsewhere int
	first     string
}

// bucketOf is what of a cell's bucket a policy looks at.
func bucketOf(c *page.Cell) limiter.Bucket {
	return limiter.Bucket{Service: c.Service, Name: c.Name, Match: c.Selects, Block: c.Block}
}

// match finds what a policy computes beside others; other ones of its name do not
// count.
func (s site) match(spec *policy.Spec, others []policy.Spec) matched {
	specs := []policy.Spec{*spec}
	for _, o := range others {
		if o.Name != spec.Name {
			specs = append(specs, o)
		}
	}
	var m matched
	seen := make(map[string]bool)
	cells := s.Backend.Cells()
	for i := range cells {
		c := &cells[i]
		bucket := bucketOf(c)
		if c.Cap != "" || policyfile.Choose(specs[:1], bucket) == nil {
			continue
		}
		name := c.Bucket()
		counted := seen[name]
		seen[name] = true
		if chosen := policyfile.Choose(specs, bucket); chosen != &specs[0] {
			if !counted {
				m.elsewhere++
				m.first = cmp.Or(m.first, chosen.Name)
			}
			continue
		}
		if !counted {
			m.buckets++
		}
		m.cells = append(m.cells, *c)
	}
	s.worstFirst(m.cells)
	return m
}

// worstFirst sorts cells: those that came nearest to their limits in the last 7
// days first, then by what they are offered.
func (s site) worstFirst(cells []page.Cell) {
	rank := make(map[limiter.CellID]int)
	for i, h := range s.Backend.Past().Headroom {
		rank[h.Cell] = i + 1
	}
	place := func(c *page.Cell) int {
		if at := rank[c.ID()]; at > 0 {
			return at
		}
		return len(rank) + 1
	}
	slices.SortFunc(cells, func(a, b page.Cell) int {
		return cmp.Or(cmp.Compare(place(&a), place(&b)), cmp.Compare(b.OfferedRPS, a.OfferedRPS),
			strings.Compare(a.Bucket(), b.Bucket()), strings.Compare(a.Instance, b.Instance), strings.Compare(a.Caller, b.Caller))
	})
}

// text says how many buckets match: "318 buckets match. It selects 6 more, which
// others such as black-friday compute, being more specific."
func (m matched) text() string {
	text := format.Plural(m.buckets, "bucket") + " match"
	if m.buckets == 1 {
		text += "es"
	}
	text += "."
	if m.elsewhere > 0 {
		text += fmt.Sprintf(" %s more would, but for more specific policies such as %s.", format.Count(m.elsewhere), format.Printable(m.first))
	}
	return text
}

const bucketRows = 50

// bucketsView is the page of what a policy computes.
type bucketsView struct {
	Name  string // of the policy
	Back  string // URL
	Text  string
	Rows  []bucketRow
	Pager page.Pager
}

// bucketRow is one cell, ready to print.
type bucketRow struct {
	page.Label
	Instance               string
	Offered, Limit, Nearly string
	Trial                  string // URL
}

func (s site) serveBuckets(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := q.Get("name")
	all, err := s.read(r.Context(), 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	spec := all.spec(name)
	if spec == nil {
		s.Fail(w, r, errNoPolicy())
		return
	}
	found := s.match(spec, all.specs)
	number, _ := strconv.Atoi(q.Get("page"))
	v := bucketsView{Name: format.Printable(name), Back: path("/policies/show", "name", name), Text: found.text()}
	pager, from, to := page.NewPager(len(found.cells), bucketRows, number, func(n int) string {
		return path("/policies/buckets", "name", name, "page", strconv.Itoa(n))
	})
	v.Pager = pager
	for _, c := range found.cells[from:to] {
		v.Rows = append(v.Rows, s.bucketRow(name, c))
	}
	p := s.Page(r, "Buckets of "+v.Name, "/policies")
	p.Crumbs = []page.Crumb{{Name: "Policies", Path: "/policies"}, {Name: v.Name, Path: v.Back}, {Name: "Buckets"}}
	s.Render(w, r, http.StatusOK, bucketsPage(p, v))
}

func (s site) bucketRow(name string, c page.Cell) bucketRow {
	r := bucketRow{
		Label: page.NewLabel(c.Bucket(), c.Instance, c.Caller, c.Match), Instance: format.Printable(c.Instance),
		Offered: format.RPS(c.OfferedRPS), Limit: format.RPS(c.LimitRPS),
		Trial: path("/policies/trial", "name", name, "bucket", c.Bucket(), "instance", c.Instance, "caller", c.Caller),
	}
	if c.LimitRPS > 0 {
		r.Nearly = format.Share(c.OfferedRPS / c.LimitRPS)
	}
	return r
}

// kindText says what a policy is in a few words: "peak, propose".
func kindText(p *grlv1.Policy) string {
	if p.GetKind() == "" {
		return "cannot be read by this version"
	}
	return format.Printable(p.GetKind()) + ", " + modeText(p.GetMode())
}

func modeText(m grlv1.PolicyMode) string {
	switch m {
	case grlv1.PolicyMode_POLICY_MODE_SHADOW:
		return "shadow"
	case grlv1.PolicyMode_POLICY_MODE_APPLY:
		return "apply"
	}
	return "propose"
}
