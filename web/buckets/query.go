package buckets

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"grl/limiter"
	"grl/web/format"
	"grl/web/page"
)

const (
	pageRows = 50  // rows of a page
	maxText  = 256 // bytes of a filter that are looked at; the longest name has as many
)

// query is how a person narrows and orders the table; it lives in the URL. The
// zero value is all buckets, the highest drop ratio first.
type query struct {
	Text      string // words, each of which must occur in a row
	State     string // a value of stateNames; empty: any
	Scope     string // a value of scopeNames; empty: any
	Behavior  string // a value of behaviorNames; empty: any
	Service   string // empty: any, and so below
	Owner     string
	Caller    string // whom the bucket names, or whose cell it is
	Procedure string // that the bucket names, by itself or by a prefix
	Sort      string // a key of sortKeys, after a minus if descending; empty: -ratio
	Page      int    // from 1; 0 is 1
	Rows      int    // a page, at most pageRows; 0 is pageRows
}

// stateNames are the filters by state.
var stateNames = []page.Choice{
	{Name: "Any state"},
	{Value: "over", Name: "Over limit"},
	{Value: "near", Name: "Near limit"},
	{Value: "enforced", Name: "Enforced"},
	{Value: "shadow", Name: "Shadow"},
	{Value: "capped", Name: "Capped"},
	{Value: "blocked", Name: "Blocked"},
}

// states maps the values of stateNames.
var states = map[string]page.CellState{
	"over":     page.Over,
	"near":     page.Near,
	"enforced": page.Enforced,
	"shadow":   page.Shadow,
	"capped":   page.Capped,
	"blocked":  page.Blocked,
}

// scopeNames are the filters by scope.
var scopeNames = []page.Choice{{Name: "Any"}, {Value: "global", Name: "Global"}, {Value: "region", Name: "Region"}, {Value: "zone", Name: "Zone"}}

// scopes maps the values of scopeNames.
var scopes = map[string]limiter.Scope{"global": limiter.Global, "region": limiter.Region, "zone": limiter.Zone}

// behaviorNames are the filters by behavior.
var behaviorNames = []page.Choice{{Name: "Any"}, {Value: "deny", Name: "Deny"}, {Value: "allow", Name: "Allow"}}

// behaviors maps the values of behaviorNames.
var behaviors = map[string]limiter.Behavior{"deny": limiter.Deny, "allow": limiter.Allow}

// sortKeys maps the columns a table can be sorted by to their order, smallest
// first. Rows that are equal follow in the order of their names.
var sortKeys = map[string]func(a, b *page.Cell) int{
	"name":  compareNames,
	"state": func(a, b *page.Cell) int { return cmp.Compare(a.State(), b.State()) },
	"scope": func(a, b *page.Cell) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Instance, b.Instance))
	},
	"offered":  func(a, b *page.Cell) int { return cmp.Compare(a.OfferedRPS, b.OfferedRPS) },
	"admitted": func(a, b *page.Cell) int { return cmp.Compare(a.AdmittedRPS, b.AdmittedRPS) },
	"limit":    func(a, b *page.Cell) int { return cmp.Compare(a.LimitRPS, b.LimitRPS) },
	"ratio":    func(a, b *page.Cell) int { return cmp.Compare(a.DropRatio(), b.DropRatio()) },
	"virtual":  func(a, b *page.Cell) int { return cmp.Compare(a.Virtual(), b.Virtual()) },
	"owner":    func(a, b *page.Cell) int { return cmp.Compare(a.Owner, b.Owner) },
}

// wordKeys are those columns that begin with A when they are first sorted by.
var wordKeys = map[string]bool{"name": true, "scope": true, "owner": true}

// defaultSort shows what drops most first.
const defaultSort = "-ratio"

// parseQuery reads a query from a URL. What it does not know it ignores, so
// that an old link still shows something.
func parseQuery(v url.Values) query {
	q := query{
		Text: text(v, "q"), Service: text(v, "service"), Owner: text(v, "owner"),
		Caller: text(v, "caller"), Procedure: text(v, "procedure"),
	}
	if _, ok := states[v.Get("state")]; ok {
		q.State = v.Get("state")
	}
	if _, ok := scopes[v.Get("scope")]; ok {
		q.Scope = v.Get("scope")
	}
	if _, ok := behaviors[v.Get("behavior")]; ok {
		q.Behavior = v.Get("behavior")
	}
	if s := v.Get("sort"); s != defaultSort && sortKeys[strings.TrimPrefix(s, "-")] != nil {
		q.Sort = s
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 1 {
		q.Page = n
	}
	if n, err := strconv.Atoi(v.Get("rows")); err == nil && n > 0 && n < pageRows {
		q.Rows = n
	}
	return q
}

// text returns a filter that is typed.
func text(v url.Values, key string) string {
	s := strings.TrimSpace(strings.ToValidUTF8(v.Get(key), ""))
	if len(s) > maxText {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:maxText], ""))
	}
	return s
}

// url returns the address of the table that q describes. The first page and
// other defaults are left out.
func (q query) url() string {
	v := make(url.Values)
	for key, value := range map[string]string{
		"q": q.Text, "state": q.State, "scope": q.Scope, "behavior": q.Behavior, "service": q.Service, "owner": q.Owner,
		"caller": q.Caller, "procedure": q.Procedure, "sort": q.Sort,
	} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Page > 1 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	if q.Rows != 0 {
		v.Set("rows", strconv.Itoa(q.Rows))
	}
	if len(v) == 0 {
		return "/buckets"
	}
	return "/buckets?" + v.Encode()
}

// onPage returns q for another page of the same table.
func (q query) onPage(n int) query {
	q.Page = n
	return q
}

// sort returns the column, and whether the largest come first.
func (q query) sort() (key string, descending bool) {
	return strings.CutPrefix(cmp.Or(q.Sort, defaultSort), "-")
}

// sortedBy returns q ordered by key, from its first page on: largest first at
// the first click (words from A), the other way at the second.
func (q query) sortedBy(key string) query {
	present, descending := q.sort()
	down := !wordKeys[key]
	if present == key {
		down = !descending
	}
	q.Sort, q.Page = key, 0
	if down {
		q.Sort = "-" + key
	}
	if q.Sort == defaultSort {
		q.Sort = ""
	}
	return q
}

// filter is one that is on.
type filter struct {
	Name, Value string // "State", "Over limit"
	Without     string // address of the table without it
}

// filters returns those that are on besides the search.
func (q query) filters() []filter {
	var on []filter
	add := func(name, value string, without func(*query)) {
		if value != "" {
			rest := q
			rest.Page = 0
			without(&rest)
			on = append(on, filter{name, value, rest.url()})
		}
	}
	add("State", nameOf(stateNames, q.State), func(r *query) { r.State = "" })
	add("Service", q.Service, func(r *query) { r.Service = "" })
	add("Scope", nameOf(scopeNames, q.Scope), func(r *query) { r.Scope = "" })
	add("Owner", q.Owner, func(r *query) { r.Owner = "" })
	add("Caller", q.Caller, func(r *query) { r.Caller = "" })
	add("Procedure", q.Procedure, func(r *query) { r.Procedure = "" })
	add("Behavior", nameOf(behaviorNames, q.Behavior), func(r *query) { r.Behavior = "" })
	return on
}

// nameOf returns the name of a choice; empty: none is chosen.
func nameOf(choices []page.Choice, value string) string {
	for _, c := range choices {
		if value != "" && c.Value == value {
			return c.Name
		}
	}
	return ""
}

// more reports whether a filter is on that is folded away at first.
func (q query) more() bool { return q.Caller != "" || q.Procedure != "" || q.Behavior != "" }

// find returns the places in cells of those that q asks for, in no order.
func (q query) find(cells []page.Cell) []int {
	words := strings.Fields(strings.ToLower(q.Text))
	found := make([]int, 0, len(cells))
	for i := range cells {
		if q.selects(&cells[i], words) {
			found = append(found, i)
		}
	}
	return found
}

// window returns the rows from up to, not including, to of found in the order
// of q. It reorders found.
func (q query) window(found []int, from, to int, cells []page.Cell) []int {
	key, descending := q.sort()
	order := sortKeys[key]
	return page.Window(found, from, to, func(i, j int) int {
		a, b := &cells[i], &cells[j]
		c := order(a, b)
		if descending {
			c = -c
		}
		if c != 0 {
			return c
		}
		return compareNames(a, b)
	})
}

// selects reports whether the filters of q let b through; words are those of
// q.Text in lower case.
func (q *query) selects(b *page.Cell, words []string) bool {
	switch {
	case q.Service != "" && b.Service != q.Service,
		q.Owner != "" && b.Owner != q.Owner,
		q.State != "" && b.State() != states[q.State],
		q.Scope != "" && b.Scope != scopes[q.Scope],
		q.Behavior != "" && b.Behavior != behaviors[q.Behavior],
		q.Caller != "" && b.Caller != q.Caller && !names(b.Selects.Caller, q.Caller),
		q.Procedure != "" && !names(b.Selects.Procedure, q.Procedure):
		return false
	}
	for _, w := range words {
		if !contains(b, w) {
			return false
		}
	}
	return true
}

// names reports whether a pattern selects a name and not just every name, or is
// what was asked for.
func names(p limiter.Pattern, name string) bool {
	return p != "" && p != "*" && (string(p) == name || p.Match(name))
}

// contains reports whether word, in lower case, occurs in b's names. One with
// a slash also matches across service and name.
func contains(b *page.Cell, word string) bool {
	return containsFold(b.Service, word) || containsFold(b.Name, word) || containsFold(b.Match, word) ||
		containsFold(b.Caller, word) || containsFold(b.Class, word) || containsFold(b.Owner, word) || containsFold(b.Instance, word) ||
		strings.Contains(word, "/") && containsFold(b.Service+"/"+b.Name, word)
}

// containsFold reports whether lower, which is in lower case, occurs in s,
// whatever the case of its ASCII letters. It does not allocate: it runs over
// all names of all cells.
func containsFold(s, lower string) bool {
	for i := 0; i+len(lower) <= len(s); i++ {
		if hasPrefixFold(s[i:], lower) {
			return true
		}
	}
	return false
}

func hasPrefixFold(s, lower string) bool {
	for i := range len(lower) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// compareNames orders cells by what they are called.
func compareNames(a, b *page.Cell) int {
	if c := strings.Compare(a.Service, b.Service); c != 0 {
		return c
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Instance, b.Instance), strings.Compare(a.Caller, b.Caller), strings.Compare(a.Class, b.Class))
}

func (f filter) printed() string { return format.Printable(f.Value) }
