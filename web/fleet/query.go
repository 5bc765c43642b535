package fleet

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"grl/web/page"
)

const (
	maxText  = 200 // bytes of a search
	maxFolds = 50  // branches that an address opens or closes
)

// showNames narrow the table to nodes in a state.
var showNames = []page.Choice{
	{Value: "", Name: "All"},
	{Value: "trouble", Name: "Need a look"},
	{Value: "late", Name: "No report"},
	{Value: "refused", Name: "Refused a revision"},
	{Value: "behind", Name: "Behind the revision"},
	{Value: "off", Name: "Drop nothing"},
}

// query is what an address says of the table.
type query struct {
	Text, Show, Version string
	Open, Close         []string // branches that are not as they would be, such as "z.eu-2" and "r.eu"
	In                  string   // the branch, or "" the list, of which Page is shown
	Page                int      // from 1
}

func newQuery(v url.Values) query {
	q := query{Text: strings.ToValidUTF8(cut(strings.TrimSpace(v.Get("q")), maxText), ""), Version: cut(v.Get("version"), maxText), In: cut(v.Get("in"), maxText)}
	for _, c := range showNames {
		if c.Value == v.Get("show") {
			q.Show = c.Value
		}
	}
	q.Open, q.Close = folds(v["open"]), folds(v["close"])
	if q.Page, _ = strconv.Atoi(v.Get("page")); q.Page < 1 {
		q.Page = 1
	}
	return q
}

func folds(in []string) []string {
	var out []string
	for _, key := range in[:min(len(in), maxFolds)] {
		if len(key) <= maxText && key != "" && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// narrowed reports whether a filter is on: then the table is a list.
func (q query) narrowed() bool { return q.Text != "" || q.Show != "" || q.Version != "" }

// url is the address of the table.
func (q query) url() string {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.Text, "show": q.Show, "version": q.Version, "in": q.In} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(q.Open) > 0 {
		v["open"] = q.Open
	}
	if len(q.Close) > 0 {
		v["close"] = q.Close
	}
	if q.Page > 1 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	if len(v) == 0 {
		return "/fleet"
	}
	return "/fleet?" + v.Encode()
}

// isOpen reports whether a branch is open, which by itself would be as given.
func (q query) isOpen(key string, byItself bool) bool {
	if byItself {
		return !slices.Contains(q.Close, key)
	}
	return slices.Contains(q.Open, key)
}

// folded returns the address at which a branch is folded, if it is open, or
// opened.
func (q query) folded(key string, byItself bool) string {
	open := q.isOpen(key, byItself)
	q.Open, q.Close = without(q.Open, key), without(q.Close, key)
	if q.In == key {
		q.In, q.Page = "", 1
	}
	switch {
	case open && byItself:
		q.Close = append(q.Close, key)
	case !open && !byItself:
		q.Open = append(q.Open, key)
	}
	return q.url()
}

// whole returns the address at which all of a branch that opens by itself is
// shown.
func (q query) whole(key string, number int) string {
	q.Open, q.Close = append(without(q.Open, key), key), without(q.Close, key)
	q.In, q.Page = key, number
	return q.url()
}

// page returns the page that is shown of a branch.
func (q query) page(key string) int {
	if q.In == key {
		return q.Page
	}
	return 1
}

func without(keys []string, key string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == key })
}
