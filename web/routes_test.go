package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
	"grl/web/pagetest"
)

// doors need no account, or are one's own: no procedure stands for them.
var doors = map[string]access.Level{
	"GET /login": access.Nobody, "POST /login": access.Nobody, "POST /logout": access.Nobody,
	"GET /first": access.Nobody, "POST /first": access.Nobody,
	"GET /oidc/start": access.Nobody, "GET /oidc/callback": access.Nobody,
	"POST /theme": access.Viewer, "POST /keys": access.Viewer,
}

// ownForms are those by which a viewer changes something: what is their own, or
// nothing.
var ownForms = map[string]bool{
	"POST /account/tokens": true, "POST /account/tokens/revoke": true, "POST /account/sessions/end": true,
	"POST /shadow/chosen": true, // leads to the page of what is ticked
}

// members are People with an account of each level, whose name is the secret.
type members struct{ page.People }

func (members) Person(_ context.Context, bearer, _ string) (access.Person, error) {
	for _, l := range []access.Level{access.Viewer, access.Editor, access.Admin} {
		if l.String() == bearer {
			return access.Person{Name: bearer, Level: l, By: "session", Session: "1"}, nil
		}
	}
	return access.Person{}, access.ErrUnknown
}

func (members) Open(context.Context) bool                   { return false }
func (members) Bootstrap(context.Context) (string, error)   { return "", nil }
func (members) Logout(context.Context) error                { return nil }
func (members) Provider() bool                              { return false }
func (members) MayCreateFirst(context.Context, string) bool { return false }
func (members) Service() grlv1connect.AccessServiceHandler {
	return grlv1connect.UnimplementedAccessServiceHandler{}
}

func (members) StartProvider(context.Context, string) (string, string, error) {
	return "", "", access.ErrUnknown
}

func (members) FinishProvider(context.Context, string, url.Values) (string, string, error) {
	return "", "", access.ErrUnknown
}

func (members) Login(context.Context, string, string) (string, time.Time, error) {
	return "", time.Time{}, access.ErrUnknown
}

func (members) CreateFirst(context.Context, string, string, string) (string, error) {
	return "", access.ErrUnknown
}

// noServices answer nothing: what gets as far as them was let through.
func noServices() page.Services {
	return page.Services{
		View: grlv1connect.UnimplementedViewServiceHandler{}, Config: grlv1connect.UnimplementedConfigServiceHandler{},
		Incident: grlv1connect.UnimplementedIncidentServiceHandler{}, Audit: grlv1connect.UnimplementedAuditServiceHandler{},
		Policy: grlv1connect.UnimplementedPolicyServiceHandler{}, RLC: grlv1connect.UnimplementedRLCServiceHandler{},
		Alert: grlv1connect.UnimplementedAlertServiceHandler{},
	}
}

// closed is a Stop of streams: each says once what there is.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// guardedPages are all pages behind the gate of a controller.
func guardedPages(t testing.TB) (http.Handler, []page.Route) {
	t.Helper()
	o := Options{Backend: pagetest.Memory{Rows: pagetest.Cells()}, Services: noServices(), People: members{}, Stop: closed()}
	gate := access.NewGate(access.Options{Role: access.Controller, People: members{}, Registry: prometheus.NewRegistry()})
	site := pagetest.Site(o.Backend)
	site.Services, site.People = o.Services, o.People
	return gate.Handler(newHandler(o, testAssets(t, true))), routes(site)
}

// request is what a browser of a person sends; who "" is nobody.
func request(pattern, who string) *http.Request {
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimSuffix(path, "{$}")
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("reason=because")
	}
	r := httptest.NewRequest(method, "http://localhost:7070"+path, body)
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	return r
}

// needs returns who may come to a route, and whether that is declared.
func needs(r page.Route) (access.Level, bool) {
	if r.Procedure == "" {
		level, ok := doors[r.Pattern]
		return level, ok
	}
	rule, ok := access.RuleOf(r.Procedure)
	return rule.People, ok && !rule.Anyone && rule.People > access.Nobody
}

// Each route lets in who its procedure's rule names, and nobody else: the gate
// asks for a viewer, the page for the rest.
func TestEachRouteForEachRole(t *testing.T) {
	h, routes := guardedPages(t)
	for _, route := range routes {
		level, ok := needs(route)
		if !ok {
			t.Errorf("%s: no rule says who may: name the procedure that it stands for", route.Pattern)
			continue
		}
		post := strings.HasPrefix(route.Pattern, "POST ")
		if post && level < access.Editor && !ownForms[route.Pattern] && route.Procedure != "" {
			t.Errorf("%s changes something, and %s may use it", route.Pattern, level)
		}
		for _, who := range []access.Level{access.Nobody, access.Viewer, access.Editor, access.Admin} {
			t.Run(fmt.Sprintf("%s as %s", route.Pattern, who), func(t *testing.T) {
				name := who.String()
				if who == access.Nobody {
					name = ""
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, request(route.Pattern, name))
				refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), "You can look, not change")
				toLogin := strings.HasPrefix(w.Header().Get("Location"), "/login")
				switch {
				case who >= level && (refused || toLogin && level > access.Nobody):
					t.Errorf("status %d: refused, though %s may", w.Code, who)
				case who < level && who == access.Nobody && !post && !(w.Code == http.StatusSeeOther && toLogin):
					t.Errorf("status %d, want 303 to where one signs in", w.Code)
				case who < level && who == access.Nobody && post && w.Code != http.StatusUnauthorized:
					t.Errorf("status %d, want 401", w.Code)
				case who < level && who > access.Nobody && w.Code != http.StatusForbidden:
					t.Errorf("status %d, want 403", w.Code)
				}
			})
		}
	}
}

// A form of another site is refused on every route, before it is looked at.
func TestFormsOfOtherSitesOnEveryRoute(t *testing.T) {
	h, routes := guardedPages(t)
	for _, route := range routes {
		if !strings.HasPrefix(route.Pattern, "POST ") {
			continue
		}
		for name, header := range map[string]http.Header{
			"Sec-Fetch-Site": {"Sec-Fetch-Site": {"cross-site"}},
			"Origin":         {"Origin": {"https://evil.example"}},
		} {
			r := request(route.Pattern, "admin")
			for k, v := range header {
				r.Header[k] = v
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
				t.Errorf("%s with %s: status %d, want 403", route.Pattern, name, w.Code)
			}
		}
	}
}

// Every answer of every route has the headers that keep it to itself, those of
// the gate too.
func TestHeadersOnEveryRoute(t *testing.T) {
	h, routes := guardedPages(t)
	for _, route := range routes {
		for _, who := range []string{"", "viewer", "admin"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(route.Pattern, who))
			got := w.Header()
			if !strings.Contains(got.Get("Content-Security-Policy"), "frame-ancestors 'none'") || got.Get("X-Frame-Options") != "DENY" || got.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s as %q: status %d, headers %v", route.Pattern, who, w.Code, got)
			}
			if got.Get("Cross-Origin-Opener-Policy") != "same-origin" || got.Get("Referrer-Policy") != "same-origin" {
				t.Errorf("%s as %q: status %d, headers %v", route.Pattern, who, w.Code, got)
			}
			if got.Get("Cache-Control") == "" && w.Code != http.StatusSeeOther {
				t.Errorf("%s as %q: status %d may be cached", route.Pattern, who, w.Code)
			}
		}
	}
}
