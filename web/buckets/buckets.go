package buckets

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"grl/limiter"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

const mostSuggested = 500 // names that a filter suggests

// bucketsView is the table and the form above it.
type bucketsView struct {
	Query    query
	Rows     []bucketRow
	Columns  []column
	Pager    page.Pager
	Any      bool // there is a bucket at all
	Similar  similar
	Revision string // "r1482"; empty: none yet
	MayAdd   bool

	Lacks page.Silence // what rates of the rows lack

	cells []page.Cell // of Rows

	// Of a whole page only.
	Services int // of all buckets
	Names    suggested
}

// suggested is what filters suggest.
type suggested struct{ Services, Owners, Callers []string }

// bucketRow is one line of the table, every value ready to print.
type bucketRow struct {
	ID         string // of the element, the same whatever the order
	Label      page.Label
	Owner      cutName
	Scope      cutName // "region eu"
	State      page.CellState
	Silent     bool // rates are the last known ones
	Lacks      page.Silence
	Spark      chart.Sparkline
	Offered    string
	Admitted   string
	Limit      string
	Ratio      string
	Dropping   bool
	Virtual    string
	AnyVirtual bool
}

// column is a head of the table.
type column struct {
	Name, Unit string
	Class      string // of the cell
	URL        string // sorts by it; empty: cannot
	Aria       string // aria-sort; empty: not sorted by it
	Arrow      string
}

func newBucketsView(cells []page.Cell, q query) bucketsView {
	v := bucketsView{Query: q, Columns: bucketColumns(q), Any: len(cells) > 0}
	found := q.find(cells)
	size := pageRows
	if q.Rows > 0 {
		size = q.Rows
	}
	p, from, to := page.NewPager(len(found), size, q.Page, func(n int) string { return q.onPage(n).url() })
	p.Of = format.Plural(len(found), "row") // a bucket has several: of its callers, and of zones or regions
	v.Pager = p
	for _, i := range q.window(found, from, to, cells) {
		v.Rows = append(v.Rows, newBucketRow(&cells[i]))
		v.cells = append(v.cells, cells[i])
	}
	if len(found) == 0 {
		v.Similar, _ = findSimilar(cells, q.Text)
	}
	return v
}

func newBucketRow(b *page.Cell) bucketRow {
	r := bucketRow{
		ID:         rowID(b),
		Label:      labelOf(b),
		Owner:      newCutName(b.Owner),
		Scope:      newCutName(scopeOf(b)),
		State:      b.State(),
		Silent:     b.Silent,
		Spark:      chart.Sparkline{LimitRPS: b.LimitRPS, Shadow: b.Behavior != limiter.Deny},
		Offered:    format.RPS(b.OfferedRPS),
		Admitted:   format.RPS(b.AdmittedRPS),
		Limit:      format.RPS(b.LimitRPS),
		Ratio:      format.Share(b.DropRatio()),
		Dropping:   b.DropRatio() > 0,
		Virtual:    format.RPS(b.Virtual()),
		AnyVirtual: b.Virtual() > 0,
	}
	if b.Block {
		r.Limit = "Block" // zero would be a number
	}
	return r
}

// lack marks the rates that lack what silent zones offer.
func (v *bucketsView) lack(b page.Backend) {
	if v.Lacks = page.SilenceIn(b, v.cells); !v.Lacks.Any() {
		return
	}
	fleet := b.Fleet()
	for i := range v.Rows {
		r := &v.Rows[i]
		r.Lacks = fleet.SilenceOf(v.cells[i].SilentZones)
		for _, figure := range []*string{&r.Offered, &r.Admitted, &r.Virtual} {
			*figure = r.Lacks.AtLeast(*figure)
		}
	}
}

func scopeOf(b *page.Cell) string {
	if b.Scope == limiter.Global || b.Instance == "" {
		return b.Scope.String()
	}
	return b.Scope.String() + " " + b.Instance
}

// cutName is a name of which no more is printed than can be seen: 50 rows of the
// longest names would be more than a page may be.
type cutName struct{ Shown, Whole string }

const (
	shownName  = 40  // bytes; a column shows fewer
	shownMatch = 160 // of two patterns
)

func newCutName(name string) cutName {
	return cutName{Shown: format.Printable(cut(name, shownName)), Whole: format.Printable(name)}
}

// cut returns text without what is beyond a length in bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// rowID returns an id for the element of a cell.
func rowID(b *page.Cell) string {
	h := fnv.New64a()
	for _, s := range []string{b.Service, b.Name, b.Instance, b.Caller, b.Class} {
		_, _ = h.Write([]byte(s)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return fmt.Sprintf("row-%016x", h.Sum64())
}

// labelOf names a cell, with a link to it.
func labelOf(b *page.Cell) page.Label {
	l := page.NewLabel(b.Bucket(), b.Instance, b.Caller, cut(b.Match, shownMatch))
	l.For = format.Printable(strings.Trim(b.Caller+", "+b.Class, ", "))
	if b.Cap != "" {
		l.Name, l.Path = "cap "+format.Printable(b.Cap), "/caps"
	}
	return l
}

// ids names the cells of the rows.
func (v *bucketsView) ids() []limiter.CellID {
	ids := make([]limiter.CellID, len(v.cells))
	for i := range v.cells {
		ids[i] = v.cells[i].ID()
	}
	return ids
}

// draw fills in what each row was offered in the last day: means over 20 minutes
// in requests per second, NaN where nothing is known.
func (v *bucketsView) draw(days [][]float64) {
	for i := range min(len(v.Rows), len(days)) {
		v.Rows[i].Spark.Values, v.Rows[i].Spark.Label = days[i], sparkLabel(days[i])
	}
}

// sparkLabel says what a sparkline shows.
func sparkLabel(values []float64) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if high < low {
		return "Offered load of the last 24 hours is not known"
	}
	return "Offered load of the last 24 hours, " + format.RPS(low) + " to " + format.RPS(high) + " rps"
}

// suggest fills in what filters suggest, and how many services there are.
func (v *bucketsView) suggest(cells []page.Cell) {
	services := namesOf(cells, func(c *page.Cell) string { return c.Service })
	v.Services = len(services)
	v.Names = suggested{
		Services: first(services),
		Owners:   first(namesOf(cells, func(c *page.Cell) string { return c.Owner })),
		Callers:  first(namesOf(cells, func(c *page.Cell) string { return c.Caller })),
	}
}

// first returns the first names of a set that are suggested, sorted.
func first(names map[string]struct{}) []string {
	delete(names, "")
	all := slices.Sorted(maps.Keys(names))
	return all[:min(len(all), mostSuggested)]
}

// namesOf returns the names of one kind, each once.
func namesOf(cells []page.Cell, name func(*page.Cell) string) map[string]struct{} {
	names, last := make(map[string]struct{}), ""
	for i := range cells {
		if s := name(&cells[i]); s != last || i == 0 {
			names[s], last = struct{}{}, s
		}
	}
	return names
}

// bucketColumns are the heads of the table as q sorts it.
func bucketColumns(q query) []column {
	columns := []column{
		{Name: "Bucket", URL: "name"},
		{Name: "State", Class: "wide-only", URL: "state"},
		{Name: "Scope", Class: "room-only", URL: "scope"},
		{Name: "Offered, 24 h", Class: "room-only"},
		{Name: "Offered", Unit: "rps", Class: "num", URL: "offered"},
		{Name: "Admitted", Unit: "rps", Class: "num wide-only", URL: "admitted"},
		{Name: "Limit", Unit: "rps", Class: "num wide-only", URL: "limit"},
		{Name: "Drop ratio", Class: "num", URL: "ratio"},
		{Name: "Virtual drops", Unit: "rps", Class: "num wide-only", URL: "virtual"},
		{Name: "Owner", Class: "room-only", URL: "owner"},
	}
	present, descending := q.sort()
	for i := range columns {
		c := &columns[i]
		if c.URL == "" {
			continue
		}
		if c.URL == present {
			c.Aria, c.Arrow = "ascending", "↑"
			if descending {
				c.Aria, c.Arrow = "descending", "↓"
			}
		}
		c.URL = q.sortedBy(c.URL).url()
	}
	return columns
}

// facts says what they are of; how many rows there are is said once, at the pages.
func (v bucketsView) facts() []string {
	facts := []string{format.Plural(v.Services, "service")}
	if v.Revision != "" {
		facts = append(facts, "revision "+v.Revision)
	}
	return facts
}

// actions are what one may do here; nil: nothing.
func (v bucketsView) actions() templ.Component {
	if !v.MayAdd {
		return nil
	}
	return newBucket()
}

// emptyTitle says what was looked for in vain.
func (v bucketsView) emptyTitle() string {
	if v.Query.Text != "" {
		return "No bucket matches “" + format.Printable(v.Query.Text) + "”"
	}
	return "No bucket matches"
}

// emptyText names the filters that are on besides the search.
func (v bucketsView) emptyText() string {
	var on []string
	for _, f := range v.Query.filters() {
		on = append(on, "“"+format.Printable(f.Value)+"”")
	}
	also := ""
	if v.Query.Text != "" {
		also = "also "
	}
	switch len(on) {
	case 0:
		return "A search looks at service, bucket, caller, procedure, owner, region and zone."
	case 1:
		return "The filter " + on[0] + " is " + also + "on."
	}
	last := len(on) - 1
	return "The filters " + strings.Join(on[:last], ", ") + " and " + on[last] + " are " + also + "on."
}
