package shadow

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"grl/policy/verdict"
	"grl/web/page"
)

const (
	pageRows = 50
	maxText  = 200 // bytes of a search or name that are looked at
)

// query is how a person narrows and orders the list; it lives in the URL. The
// zero value is all, those that are ready first.
type query struct {
	Kind    string // a value of kinds; "": any
	Text    string
	Service string
	Sort    string // a value of sorts; "": the first of them
	Page    int    // from 1; 0 is 1
	Open    string // bucket whose map of the week is open
}

// kinds are the tabs.
var kinds = []struct {
	value string
	kind  verdict.Kind
}{{"safe", verdict.Safe}, {"hurt", verdict.WouldHurt}, {"little", verdict.TooLittle}}

// sorts are the orders, the usual one first.
var sorts = []page.Choice{
	{Value: "", Name: "Ready first"},
	{Value: "worst", Name: "Worst first"},
	{Value: "drops", Name: "Largest virtual drops"},
	{Value: "longest", Name: "Longest in shadow"},
	{Value: "name", Name: "By name"},
}

// orders are what the values of sorts stand for. Equal ones follow by name.
var orders = map[string]func(a, b *limit) int{
	"": func(a, b *limit) int { return cmp.Or(cmp.Compare(ready[a.kind], ready[b.kind]), compareHarm(a, b)) },
	"worst": func(a, b *limit) int {
		return cmp.Or(cmp.Compare(severity[b.kind], severity[a.kind]), compareHarm(b, a))
	},
	"drops":   func(a, b *limit) int { return cmp.Compare(b.lost, a.lost) },
	"longest": func(a, b *limit) int { return cmp.Compare(b.days(), a.days()) },
	"name":    func(a, b *limit) int { return 0 },
}

// ready orders verdicts: what can be enforced first.
var ready = map[verdict.Kind]int{verdict.Safe: 0, verdict.WouldHurt: 1, verdict.TooLittle: 2}

// compareHarm orders limits by what the worst day would have lost.
func compareHarm(a, b *limit) int {
	harm := func(l *limit) float64 {
		if l.worst == nil {
			return 0
		}
		return l.worst.WorstShare
	}
	return cmp.Compare(harm(a), harm(b))
}

// days is how long a limit is judged.
func (l *limit) days() float64 {
	if l.worst == nil {
		return 0
	}
	return l.worst.Days
}

// parseQuery reads a query from a URL or form. What it does not know it ignores.
func parseQuery(v url.Values) query {
	q := query{Text: clip(v.Get("q")), Service: clip(v.Get("service")), Open: v.Get("open")}
	for _, k := range kinds {
		if k.value == v.Get("verdict") {
			q.Kind = k.value
		}
	}
	if orders[v.Get("sort")] != nil {
		q.Sort = v.Get("sort")
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 1 {
		q.Page = n
	}
	return q
}

func clip(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// url returns the address of the list that q describes.
func (q query) url() string {
	v := make(url.Values)
	for key, value := range map[string]string{"verdict": q.Kind, "q": q.Text, "service": q.Service, "sort": q.Sort, "open": q.Open} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Page > 1 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	if len(v) == 0 {
		return "/shadow"
	}
	return "/shadow?" + v.Encode()
}

// of returns the same query of another tab, from its first page on.
func (q query) of(kind string) query {
	q.Kind, q.Page, q.Open = kind, 0, ""
	return q
}

// onPage returns the same query of another page.
func (q query) onPage(n int) query {
	q.Page, q.Open = n, ""
	return q
}

// opening returns the same query with the map of a bucket open.
func (q query) opening(bucket string) query {
	q.Open = bucket
	return q
}

// narrowed reports whether q leaves something out.
func (q query) narrowed() bool { return q.Kind != "" || q.Text != "" || q.Service != "" }

// selects reports whether the filters let a limit through, the tab aside; words
// are those of the text in lower case.
func (q query) selects(l *limit, words []string) bool {
	if q.Service != "" && l.service != q.Service {
		return false
	}
	for _, w := range words {
		if !strings.Contains(strings.ToLower(l.name), w) && !strings.Contains(strings.ToLower(l.match), w) &&
			!strings.Contains(strings.ToLower(l.owner), w) && !strings.Contains(strings.ToLower(l.hit), w) {
			return false
		}
	}
	return true
}

// ofKind reports whether the tab has a verdict.
func (q query) ofKind(kind verdict.Kind) bool {
	for _, k := range kinds {
		if k.value == q.Kind {
			return k.kind == kind
		}
	}
	return true
}
