package runs

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	grlv1 "grl/proto/grl/v1"
)

// Tabs of the page of a run. What is lower, or changes much, has tabs of its own,
// so that nobody chooses it in passing.
const (
	tabProposed  = "proposed"
	tabLower     = "lower"
	tabLarge     = "large"
	tabTaken     = "taken"
	tabRefused   = "refused"
	tabLeft      = "left"
	tabFailed    = "failed"
	tabUnchanged = "unchanged"
)

// tabs are in the order in which they are shown.
var tabs = []struct {
	tab, name string
	outcomes  []grlv1.RunOutcome
}{
	{tabProposed, "Proposed", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_PROPOSED}},
	{tabLower, "Lower", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_PROPOSED}},
	{tabLarge, "Over ±20%", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_PROPOSED}},
	{tabTaken, "Taken", []grlv1.RunOutcome{
		grlv1.RunOutcome_RUN_OUTCOME_APPLIED, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED,
	}},
	{tabRefused, "Refused", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_REFUSED}},
	{tabLeft, "Left", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_LEFT}},
	{tabFailed, "Failed", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_FAILED}},
	{tabUnchanged, "Unchanged", []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED}},
}

// outcomesOf returns which results a tab has; nil: there is no such tab.
func outcomesOf(tab string) []grlv1.RunOutcome {
	for _, t := range tabs {
		if t.tab == tab {
			return t.outcomes
		}
	}
	return nil
}

// decides reports whether a tab is one of proposals.
func decides(tab string) bool { return tab == tabProposed || tab == tabLower || tab == tabLarge }

// query is what of a run is shown.
type query struct {
	ID      uint64
	Tab     string
	Text    string // in the bucket's name or the sentence
	Policy  string
	Service string
	Page    int
	All     bool // what the tab chooses is ticked
}

const mostText = 200 // bytes of a filter

// readQuery reads a query or form; what makes no sense is as if it were not there.
func readQuery(v url.Values) query {
	q := query{
		ID: number(v, "id"), Tab: v.Get("tab"), Text: clip(v.Get("q")), Policy: clip(v.Get("policy")), Service: clip(v.Get("service")),
		All: v.Get("choose") == "all",
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil {
		q.Page = n
	}
	if outcomesOf(q.Tab) == nil {
		q.Tab = ""
	}
	return q
}

func clip(text string) string { return strings.TrimSpace(text[:min(len(text), mostText)]) }

// queryOf is readQuery of a request of either method.
func queryOf(r *http.Request) query {
	if r.Method == http.MethodPost {
		return readQuery(r.PostForm)
	}
	return readQuery(r.URL.Query())
}

// path returns the address of what a query shows.
func (q query) path() string {
	v := url.Values{"id": {strconv.FormatUint(q.ID, 10)}}
	for key, value := range map[string]string{"tab": q.Tab, "q": q.Text, "policy": q.Policy, "service": q.Service} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Page > 1 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	if q.All {
		v.Set("choose", "all")
	}
	return "/rlc/run?" + v.Encode()
}

func (q query) pageText() string { return strconv.Itoa(q.Page) }

// in returns the same query of another tab, from its first page on.
func (q query) in(tab string) query {
	q.Tab, q.Page, q.All = tab, 0, false
	return q
}

// at returns the same query of another page.
func (q query) at(number int) query {
	q.Page = number
	return q
}

// narrowed reports whether something is filtered.
func (q query) narrowed() bool { return q.Text != "" || q.Policy != "" || q.Service != "" }

// selects reports whether the filters let a result through.
func (q query) selects(m *grlv1.RunResult) bool {
	if q.Policy != "" && m.GetPolicy() != q.Policy || q.Service != "" && serviceOf(m.GetBucket()) != q.Service {
		return false
	}
	switch text := strings.ToLower(q.Text); {
	case text == "":
	case strings.Contains(strings.ToLower(m.GetBucket()), text), strings.Contains(strings.ToLower(m.GetReason()), text):
	default:
		return false
	}
	switch q.Tab {
	case tabLower:
		return lower(m)
	case tabLarge:
		return large(m)
	}
	return true
}

// chosen reports whether "choose all" of the tab takes a result.
func (q query) chosen(m *grlv1.RunResult) bool {
	if !waits(m) {
		return false
	}
	return q.Tab != tabProposed || !lower(m) && !large(m)
}

func serviceOf(bucket string) string {
	service, _, _ := strings.Cut(bucket, "/")
	return service
}
