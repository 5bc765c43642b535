package buckets

import (
	"grl/web/format"
	"grl/web/page"
)

import "grl/limiter"

// bucketsView is the buckets table and the form above it.
type bucketsView struct {
	Query   query
	Rows    []bucketRow
	Columns []column
	Pager   page.Pager
	Any     bool // there is a bucket at all

	Cells, Services int // counts of all
}

// bucketRow is one line of the table, every value ready to print.
type bucketRow struct {
	Service, Name string
	For           string // caller and class of the cell; empty: all
	Match, Owner  string
	Scope         string // "region"
	Instance      string // "eu"; empty: global
	State         page.CellState
	Silent        bool // rates are the last known ones
	Offered       string
	Admitted      string
	Limit         string
	Ratio         string
	Dropping      bool
	Virtual       string
	AnyVirtual    bool
	Hosts         string
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
	v := bucketsView{Query: q, Columns: bucketColumns(q), Any: len(cells) > 0, Cells: len(cells)}
	found := q.find(cells)
	size := pageRows
	if q.Rows > 0 {
		size = q.Rows
	}
	p, from, to := page.NewPager(len(found), size, q.Page, func(n int) string { return q.onPage(n).url() })
	v.Pager = p
	for _, i := range q.window(found, from, to, cells) {
		v.Rows = append(v.Rows, newBucketRow(&cells[i]))
	}
	v.Services = countServices(cells)
	return v
}

func newBucketRow(b *page.Cell) bucketRow {
	r := bucketRow{
		Service:    format.Printable(b.Service),
		Name:       format.Printable(b.Name),
		For:        format.Printable(part(b)),
		Match:      format.Printable(b.Match),
		Owner:      format.Printable(b.Owner),
		Scope:      b.Scope.String(),
		Instance:   format.Printable(b.Instance),
		State:      b.State(),
		Silent:     b.Silent,
		Offered:    format.RPS(b.OfferedRPS),
		Admitted:   format.RPS(b.AdmittedRPS),
		Limit:      format.RPS(b.LimitRPS),
		Ratio:      format.Share(b.DropRatio()),
		Dropping:   b.DropRatio() > 0,
		Virtual:    format.RPS(b.ShadowDroppedRPS),
		AnyVirtual: b.ShadowDroppedRPS > 0,
		Hosts:      format.Count(b.Hosts),
	}
	if b.Block {
		r.Limit = "Block" // zero would be a number
	}
	if b.Scope == limiter.Global {
		r.Instance = ""
	}
	return r
}

// title is the whole name, for what is cut off on the screen.
func (r bucketRow) title() string {
	name := r.Service + "/" + r.Name
	if r.For != "" {
		name += " for " + r.For
	}
	return name
}

// part names the caller and the class that the cell is for; empty: all.
func part(b *page.Cell) string {
	if b.Caller == "" || b.Class == "" {
		return b.Caller + b.Class
	}
	return b.Caller + ", " + b.Class
}

// bucketColumns are the heads of the table as q sorts it.
func bucketColumns(q query) []column {
	columns := []column{
		{Name: "Bucket", URL: "name"},
		{Name: "State", Class: "wide-only"},
		{Name: "Scope", Class: "room-only"},
		{Name: "Offered", Unit: "rps", Class: "num", URL: "offered"},
		{Name: "Admitted", Unit: "rps", Class: "num wide-only", URL: "admitted"},
		{Name: "Limit", Unit: "rps", Class: "num wide-only", URL: "limit"},
		{Name: "Drop ratio", Class: "num", URL: "ratio"},
		{Name: "Virtual drops", Unit: "rps", Class: "num wide-only", URL: "virtual"},
		{Name: "Hosts", Class: "num room-only", URL: "hosts"},
		{Name: "Owner", Class: "room-only"},
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

func countServices(cells []page.Cell) int {
	services := make(map[string]struct{})
	for i := range cells {
		services[cells[i].Service] = struct{}{}
	}
	return len(services)
}

// facts says how many there are: "480 cells in 14 services".
func (v bucketsView) facts() string {
	return format.Plural(v.Cells, "cell") + " in " + format.Plural(v.Services, "service")
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
	var on string
	for _, s := range stateNames {
		if s.Value == v.Query.State {
			on = "“" + s.Name + "”"
		}
	}
	for _, s := range scopeNames {
		if s.Value == v.Query.Scope {
			if on != "" {
				on += " and "
			}
			on += "“" + s.Name + "”"
		}
	}
	switch {
	case on != "" && v.Query.Text != "":
		return "The filter " + on + " is also on."
	case on != "":
		return "The filter " + on + " is on."
	}
	return "A search looks at service, bucket, caller, procedure, owner, region and zone."
}
