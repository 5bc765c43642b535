package web

import "grl/limiter"

// bucketsView is the buckets table and the form above it.
type bucketsView struct {
	Query   query
	Rows    []bucketRow
	Columns []column
	Pager   pager
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
	State         bucketState
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

// pager leads to the neighbouring pages of a table.
type pager struct {
	From, To, Of   string
	Previous, Next string // URLs; empty: none
}

// newPager cuts total rows into pages and returns those of page number (from
// 1; beyond the last: the last) as a range.
func newPager(total, size, number int, url func(page int) string) (p pager, from, to int) {
	last := max(1, (total+size-1)/size)
	number = min(max(number, 1), last)
	from = (number - 1) * size
	to = min(from+size, total)
	p = pager{From: formatCount(min(from+1, total)), To: formatCount(to), Of: formatCount(total)}
	if number > 1 {
		p.Previous = url(number - 1)
	}
	if number < last {
		p.Next = url(number + 1)
	}
	return p, from, to
}

func newBucketsView(cells []Bucket, q query) bucketsView {
	v := bucketsView{Query: q, Columns: bucketColumns(q), Any: len(cells) > 0, Cells: len(cells)}
	found := q.find(cells)
	size := pageRows
	if q.Rows > 0 {
		size = q.Rows
	}
	p, from, to := newPager(len(found), size, q.Page, func(n int) string { return q.onPage(n).url() })
	v.Pager = p
	for _, i := range q.window(found, from, to, cells) {
		v.Rows = append(v.Rows, newBucketRow(&cells[i]))
	}
	v.Services = countServices(cells)
	return v
}

func newBucketRow(b *Bucket) bucketRow {
	r := bucketRow{
		Service:    printable(b.Service),
		Name:       printable(b.Name),
		For:        printable(b.part()),
		Match:      printable(b.Match),
		Owner:      printable(b.Owner),
		Scope:      b.Scope.String(),
		Instance:   printable(b.Instance),
		State:      b.state(),
		Silent:     b.Silent,
		Offered:    formatRPS(b.OfferedRPS),
		Admitted:   formatRPS(b.AdmittedRPS),
		Limit:      formatRPS(b.LimitRPS),
		Ratio:      formatShare(b.dropRatio()),
		Dropping:   b.dropRatio() > 0,
		Virtual:    formatRPS(b.ShadowDroppedRPS),
		AnyVirtual: b.ShadowDroppedRPS > 0,
		Hosts:      formatCount(b.Hosts),
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
func (b *Bucket) part() string {
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

func countServices(cells []Bucket) int {
	services := make(map[string]struct{})
	for i := range cells {
		services[cells[i].Service] = struct{}{}
	}
	return len(services)
}

// facts says how many there are: "480 cells in 14 services".
func (v bucketsView) facts() string {
	return plural(v.Cells, "cell") + " in " + plural(v.Services, "service")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return formatCount(n) + " " + noun + "s"
}

// emptyTitle says what was looked for in vain.
func (v bucketsView) emptyTitle() string {
	if v.Query.Text != "" {
		return "No bucket matches “" + printable(v.Query.Text) + "”"
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
