package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/proto/access"
	"grl/web/page"
	"grl/web/pagetest"
)

// mostBytes is the largest page.
const mostBytes = 300_000

// parameters are all that addresses of pages carry.
var parameters = []string{
	"q", "name", "bucket", "service", "caller", "procedure", "owner", "instance", "zone", "state", "scope", "behavior", "sort", "page", "rows", "range",
	"open", "close", "in", "show", "version", "verdict", "tab", "run", "id", "policy", "who", "what", "since", "kind", "revision", "base", "token", "next",
	"chosen", "saved", "placed", "lifted", "finished", "revoked", "ended", "deleted", "step", "from", "to", "limit", "rps", "reason",
}

// hostileFleet names everything by a text.
func hostileFleet(name string) pagetest.Memory {
	cell := page.Cell{
		Service: name, Name: name, Owner: name, Match: name + " → " + name, Instance: name, Caller: name, Class: name,
		Scope: limiter.Zone, Behavior: limiter.Deny, LimitRPS: 100, OfferedRPS: 150, AdmittedRPS: 100, DroppedRPS: 50, Ratio: 1.0 / 3, CandidateRPS: 90, CandidateDroppedRPS: 10, Hosts: 3,
	}
	shadow := cell
	shadow.Behavior, shadow.Caller, shadow.ShadowDroppedRPS = limiter.Allow, "", 50
	capped := cell
	capped.Cap = name
	bucket := cell.Bucket()
	return pagetest.Memory{
		Rows: []page.Cell{cell, shadow, capped},
		Tree: page.Fleet{
			Revision: 2, LoadError: name, SilentZones: []string{name}, SilentFor: map[string]time.Duration{name: time.Second}, SilentIn: map[string]string{name: name},
			Disabled: []string{name}, Controller: page.Node{Name: name, Version: name, Region: name},
			Rollout: &page.Rollout{Revision: 2, From: 1, Stopped: true, Reason: name, Reached: []string{name}, Waiting: []string{name}},
			Nodes: []page.Node{
				{Role: "aggregator", Name: name, Zone: name, Region: name, Version: name, Hosts: 1},
				{Role: name, Name: name, Zone: name + "2", Region: name, Version: name, RefusedRevision: 1, RefusedReason: name},
			},
		},
		ByZone:  map[string][]page.Part{bucket: {{Zone: name, Region: name, OfferedRPS: 1, Silent: true}}},
		Changes: map[string][]page.LimitChange{bucket: {{At: time.Now().Add(-time.Hour), LimitRPS: 100, Author: name, Revision: 1}}},
		History: page.Past{At: time.Now(), Read: 1, Evidence: []page.Evidence{{
			Cell: limiter.CellID{Bucket: bucket, Instance: name, Caller: name}, LimitRPS: 100, Since: time.Now().Add(-time.Hour),
			Verdict: verdict.Verdict{}, HitCaller: name, HitShare: 0.5,
		}}, Headroom: []page.Headroom{{Cell: limiter.CellID{Bucket: bucket, Instance: name, Caller: name}}}},
	}
}

// 200 hostile names, as names of everything and as all that an address carries,
// become text on every page: no markup, nothing that turns the writing, no page
// that is too large.
func TestHostileNamesOnEveryPage(t *testing.T) {
	names := pagetest.Hostile()
	if len(names) != 200 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != 200 {
		t.Fatalf("%d names, want 200 different ones", len(names))
	}
	assets := testAssets(t, true)
	admin := access.Identity{Person: &pagetest.Admin, From: "127.0.0.1", RequestID: "test"}
	pages := 0
	for i, name := range names {
		if t.Failed() {
			break // one name says enough
		}
		o := Options{Backend: hostileFleet(name), Services: noServices(), People: members{}, Version: name, Stop: closed()}
		h := newHandler(o, assets)
		site := pagetest.Site(o.Backend)
		site.Services, site.People = o.Services, o.People
		query := url.Values{}
		for _, p := range parameters {
			query.Set(p, name)
		}
		query.Set("name", name+"/"+name)
		for _, route := range routes(site) {
			if !strings.HasPrefix(route.Pattern, "GET ") || strings.HasPrefix(route.Pattern, "GET /oidc/") {
				continue
			}
			asked := []string{query.Encode()}
			if !strings.Contains(strings.TrimPrefix(route.Pattern, "GET /"), "/") { // a page that lists
				asked = append(asked, "")
			}
			for _, q := range asked {
				r := request(route.Pattern, "")
				r.URL.RawQuery = q
				r.RequestURI = r.URL.RequestURI()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r.WithContext(access.With(context.Background(), admin)))
				pages++
				what := fmt.Sprintf("name %d %.40q on %s?%.60s", i, name, route.Pattern, q)
				if w.Body.Len() > mostBytes {
					t.Errorf("%s: %d bytes", what, w.Body.Len())
				}
				if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") && w.Code != http.StatusSeeOther {
					harmless(t, what, w.Body.String())
				}
				if to := w.Header().Get("Location"); to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
					t.Errorf("%s: leads to %q", what, to)
				}
			}
		}
	}
	t.Logf("%d pages", pages)
}

// elements are those that pages are made of.
var elements = strings.Fields(`html head meta title link script body svg symbol path circle rect g defs pattern line polyline polygon text tspan desc use
	clippath lineargradient stop a aside div nav p span header ol ul li form input button label select option optgroup datalist textarea fieldset legend
	details summary main section table caption thead tbody tfoot tr th td dl dt dd h1 h2 h3 h4 b bdi code pre kbd time small strong em abbr noscript
	figure figcaption br hr output progress canvas wbr template`)

// harmless fails if a page has markup that is not a page's own, leads away, or
// prints what cannot be seen.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if !slices.Contains(elements, token.Data) {
				t.Errorf("%s: element <%s>", what, token.Data)
			}
			for _, a := range token.Attr {
				attributeIsHarmless(t, what, token, a)
			}
		case html.TextToken:
			visible(t, what, z.Token().Data)
		case html.CommentToken:
			t.Errorf("%s: a comment %.60q", what, z.Token().Data)
		}
	}
}

func attributeIsHarmless(t *testing.T, what string, e html.Token, a html.Attribute) {
	t.Helper()
	switch {
	case a.Key == "style" || strings.HasPrefix(a.Key, "on") || a.Key == "srcdoc" || a.Key == "http-equiv":
		t.Errorf("%s: <%s %s=%.60q>", what, e.Data, a.Key, a.Val)
	case slices.Contains([]string{"href", "src", "action", "formaction", "hx-get", "hx-post", "hx-sse:connect"}, a.Key):
		if a.Val != "" && (!strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "?") || strings.HasPrefix(a.Val, "//")) {
			t.Errorf("%s: <%s %s=%.60q> leads away", what, e.Data, a.Key, a.Val)
		}
	case a.Key == "id" || a.Key == "class" || a.Key == "for" || strings.HasPrefix(a.Key, "hx-"):
		if strings.ContainsAny(a.Val, "<>\x00") {
			t.Errorf("%s: <%s %s=%.60q>", what, e.Data, a.Key, a.Val)
		}
	case e.Data == "input" || e.Data == "option":
		// The value of a form goes back as it came.
	default:
		visible(t, what, a.Val)
	}
}

// visible fails for characters that cannot be seen, or turn what stands beside
// them.
func visible(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s: prints %U in %.60q", what, r, text)
			return
		}
	}
}
