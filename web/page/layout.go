package page

import (
	"context"
	"slices"

	"github.com/a-h/templ"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
)

// Link is an entry of the navigation.
type Link struct {
	Name, Path, Icon string
	Count            string // empty: none
	Due              bool   // the count needs a person
	Current          bool
}

// LinkGroup is the entries of one job.
type LinkGroup struct {
	Name  string
	Links []Link
}

// links returns the navigation as who looks may use it.
func (s *Site) links(ctx context.Context, current string) []LinkGroup {
	n := s.Backend.Counts()
	groups := []LinkGroup{
		{"Watch", []Link{
			{Name: "Overview", Path: "/", Icon: "overview"},
			{Name: "Buckets", Path: "/buckets", Icon: "buckets", Count: format.Count(n.Buckets)},
			{Name: "Shadow", Path: "/shadow", Icon: "shadow", Count: format.Count(n.Shadow)},
			{Name: "Explain", Path: "/explain", Icon: "explain"},
		}},
		{"Act", []Link{{Name: "Caps", Path: "/caps", Icon: "cap", Count: count(n.Caps)}}},
		{"Compute", []Link{
			{Name: "Policies", Path: "/policies", Icon: "policy", Count: count(n.Policies)},
			{Name: "RLC runs", Path: "/rlc", Icon: "rlc", Count: count(n.Waiting)},
		}},
		{"Operate", []Link{
			{Name: "Fleet", Path: "/fleet", Icon: "fleet"},
			{Name: "Alerts", Path: "/alerts", Icon: "alert", Count: count(n.Firing), Due: n.Firing > 0},
			{Name: "Changes", Path: "/changes", Icon: "changes"},
		}},
	}
	if s.People != nil && May(ctx, grlv1connect.AccessServiceListAccountsProcedure) {
		last := &groups[len(groups)-1]
		last.Links = append(last.Links, Link{Name: "Access", Path: "/access", Icon: "access"})
	}
	for g := range groups {
		for i := range groups[g].Links {
			l := &groups[g].Links[i]
			l.Current = l.Path == current
		}
	}
	return groups
}

// count prints a count that is not shown where there is none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return format.Count(n)
}

// htmxConfig sets htmx up for a strict policy: requests go to this origin
// only, no style is injected, history stays with the browser, and an answer
// that is no page (4xx, 5xx) is not swapped in. A poll that takes longer than
// 5 s is given up, so that the next one can be sent; a stream that broke is
// opened again within 2 s.
const htmxConfig = `{"mode":"same-origin","includeIndicatorCSS":false,"history":false,` +
	`"noSwap":[204,304,"3xx","4xx","5xx"],"defaultTimeout":5000,` +
	`"sse":{"reconnectDelay":500,"reconnectMaxDelay":2000}}`

// shortcuts are the links at the thumb of a phone: what burns first.
func (p Page) shortcuts() []Link {
	var out []Link
	for _, path := range []string{"/", "/buckets", "/caps", "/explain"} {
		for _, g := range p.Links {
			for _, l := range g.Links {
				if l.Path == path {
					out = append(out, l)
				}
			}
		}
	}
	return out
}

// scripts are those of the page, in the order in which they run.
func (p Page) scripts() []string {
	all := []string{p.Assets.HTMX}
	if p.Assets.HTMX != "" {
		all = append(all, p.Assets.Events)
	}
	all = append(all, p.Assets.Script, p.Assets.Hands)
	all = append(all, p.Scripts...)
	return slices.DeleteFunc(all, func(src string) bool { return src == "" })
}

// root is what the whole document depends on.
func (p Page) root() templ.Attributes {
	out := templ.Attributes{}
	if p.Theme != "" {
		out["data-theme"] = p.Theme
	}
	if p.KeysOff {
		out["data-keys"] = "off"
	}
	return out
}

// current marks the link to the page one is on.
func current(l Link) templ.Attributes {
	if l.Current {
		return templ.Attributes{"aria-current": "page"}
	}
	return nil
}

func (p Page) pressed(theme Choice) string {
	if p.Theme == theme.Value {
		return "true"
	}
	return "false"
}

func (p Page) keysTitle() string {
	if p.KeysOff {
		return "Keys, which are off"
	}
	return "Keys, never while one types"
}
