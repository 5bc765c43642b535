package access_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
)

// people are accounts by their token, as a store would have them.
type people struct {
	byToken map[string]access.Person
	open    bool
	err     error // instead of an answer
}

func (p people) Person(_ context.Context, bearer, _ string) (access.Person, error) {
	if p.err != nil {
		return access.Person{}, p.err
	}
	who, ok := p.byToken[bearer]
	if !ok {
		return access.Person{}, fmt.Errorf("look for token: %w", access.ErrUnknown)
	}
	return who, nil
}

func (p people) Open(context.Context) bool { return p.open }

func (p people) Bootstrap(context.Context) (string, error) { return "", nil }

var staff = people{byToken: map[string]access.Person{
	"v": {Name: "vera", Level: access.Viewer},
	"e": {Name: "ed", Level: access.Editor},
	"a": {Name: "ada", Level: access.Admin},
}}

// port returns a server whose every path answers with who asked, behind a gate.
func port(t *testing.T, o access.Options) (*httptest.Server, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	o.Registry = registry
	if o.Role == "" {
		o.Role = access.Controller
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := access.From(r.Context())
		name := "nobody"
		if id.Person != nil {
			name = id.Person.Name
		}
		_, _ = io.WriteString(w, name+" "+id.From+" "+id.RequestID)
	})
	srv := httptest.NewServer(access.NewGate(o).Handler(next))
	t.Cleanup(srv.Close)
	return srv, registry
}

// call is a request to a port; header holds pairs of name and value.
func call(t *testing.T, srv *httptest.Server, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

const (
	apply = grlv1connect.ConfigServiceApplyProcedure
	list  = grlv1connect.ViewServiceListBucketsProcedure
	join  = grlv1connect.TreeServiceJoinProcedure
	login = grlv1connect.AccessServiceLoginProcedure
)

func TestPeople(t *testing.T) {
	srv, _ := port(t, access.Options{People: staff})
	tests := []struct {
		name, path string
		header     []string
		status     int
		body       string // a part
	}{
		{"nobody", list, nil, 401, "ViewService/ListBuckets needs viewer"},
		{"viewer reads", list, []string{"Authorization", "Bearer v"}, 200, "vera"},
		{"scheme in lower case", list, []string{"Authorization", "bearer v"}, 200, "vera"},
		{"viewer edits", apply, []string{"Authorization", "Bearer v"}, 403, "vera is viewer; ConfigService/Apply needs editor"},
		{"editor edits", apply, []string{"Authorization", "Bearer e"}, 200, "ed"},
		{"admin edits", apply, []string{"Authorization", "Bearer a"}, 200, "ada"},
		{"session in a cookie", list, []string{"Cookie", "grl=v"}, 200, "vera"},
		{"cookie of TLS in plain text", list, []string{"Cookie", "__Host-grl=v"}, 401, "needs viewer"},
		{"the header wins over the cookie", list, []string{"Authorization", "Bearer x", "Cookie", "grl=v"}, 401, "unknown or has ended"},
		{"another scheme", list, []string{"Authorization", "Basic dmVyYTp2"}, 401, "needs viewer"},
		{"unknown token", list, []string{"Authorization", "Bearer x"}, 401, "unknown or has ended; sign in again"},
		{"endless token", list, []string{"Authorization", "Bearer " + strings.Repeat("v", 10000)}, 401, "needs viewer"},
		{"procedure for anyone", login, nil, 200, "nobody"},
		{"procedure for anyone with an old session", login, []string{"Cookie", "grl=x"}, 200, "nobody"},
		{"node's procedure, without TLS", join, nil, 200, "nobody"},
		{"no such procedure", "/grl.v1.ConfigService/Drop", []string{"Authorization", "Bearer a"}, 501, "no such procedure"},
		{"no such service", "/grl.v2.ConfigService/Apply", []string{"Authorization", "Bearer a"}, 501, "no such procedure"},
		{"two slashes", "//grl.v1.ConfigService/Apply", []string{"Authorization", "Bearer a"}, 501, "no such procedure"},
		{"dots", "/x/../grl.v1.ConfigService//Apply", []string{"Authorization", "Bearer a"}, 501, "no such procedure"},
		{"a slash too many", apply + "/", []string{"Authorization", "Bearer a"}, 501, "no such procedure"},
		{"escaped slash", "/grl.v1.ConfigService%2FApply", []string{"Authorization", "Bearer v"}, 403, "needs editor"},
		{"page of another site", apply, []string{"Cookie", "grl=a", "Sec-Fetch-Site", "cross-site"}, 403, "another site"},
		{"page of another site, by its origin", apply, []string{"Cookie", "grl=a", "Origin", "https://evil.example"}, 403, "another site"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := call(t, srv, http.MethodPost, tt.path, tt.header...)
			if resp.StatusCode != tt.status || !strings.Contains(body, tt.body) {
				t.Errorf("%s answers %d %q, want %d with %q", tt.path, resp.StatusCode, body, tt.status, tt.body)
			}
		})
	}
}

func TestPages(t *testing.T) {
	srv, _ := port(t, access.Options{People: staff})
	tests := []struct {
		name, method, path string
		header             []string
		status             int
		location           string
	}{
		{"start page", "GET", "/", nil, 303, "/login"},
		{"page with a query", "GET", "/buckets?q=a&page=2", nil, 303, "/login?next=%2Fbuckets%3Fq%3Da%26page%3D2"},
		{"page that does not exist", "GET", "/secret", nil, 303, "/login?next=%2Fsecret"},
		{"page of a viewer", "GET", "/buckets", []string{"Cookie", "grl=v"}, 200, ""},
		{"part of a page", "GET", "/buckets", []string{"HX-Request", "true"}, 401, ""},
		{"post to a page", "POST", "/buckets", nil, 401, ""},
		{"sign in", "GET", "/login", nil, 200, ""},
		{"asset", "GET", "/assets/grl.css", nil, 200, ""},
		{"probe", "GET", "/readyz", nil, 200, ""},
		{"metrics", "GET", "/metrics", nil, 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, _ := call(t, srv, tt.method, tt.path, tt.header...)
			if resp.StatusCode != tt.status || resp.Header.Get("Location") != tt.location {
				t.Errorf("%s %s answers %d to %q, want %d to %q", tt.method, tt.path, resp.StatusCode, resp.Header.Get("Location"), tt.status, tt.location)
			}
		})
	}
}

// A browser that asks for what looks like a procedure and is none of ours hears
// from the pages that there is no such page; what it asked for is not handed on.
func TestLostBrowsers(t *testing.T) {
	html := []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}
	for _, tt := range []struct {
		name, role, method, path string
		header                   []string
		status                   int
		location, body           string
	}{
		{"two slashes", access.Controller, "GET", "//evil.com", html, 200, "", "/not-found"},
		{"escaped dots", access.Controller, "GET", "/%2e%2e/", html, 200, "", "/not-found"},
		{"a file with a dot", access.Controller, "GET", "/robots.txt", html, 200, "", "/not-found"},
		{"slashes before a procedure", access.Controller, "GET", "//" + list[1:], html, 200, "", "/not-found"},
		{"an escaped slash before a procedure", access.Controller, "GET", "/%2F" + list[1:], html, 200, "", "/not-found"},
		{"no such procedure", access.Controller, "GET", "/grl.v1.ConfigService/Drop", html, 501, "", "no such procedure"},
		{"a post", access.Controller, "POST", "//evil.com", html, 501, "", "no such procedure"},
		{"no browser", access.Controller, "GET", "//evil.com", nil, 501, "", "no such procedure"},
		{"a port without pages", access.Aggregator, "GET", "//evil.com", html, 501, "", "no such procedure"},
		{"who is not inside", access.Controller, "GET", "//evil.com", append([]string{"Authorization", "none"}, html...), 303, "/login?next=%2Fnot-found", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gate := access.NewGate(access.Options{Role: tt.role, People: staff, Registry: prometheus.NewRegistry()})
			srv := httptest.NewServer(gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })))
			defer srv.Close()
			resp, body := call(t, srv, tt.method, tt.path, append([]string{"Cookie", "grl=v"}, tt.header...)...)
			if resp.StatusCode != tt.status || resp.Header.Get("Location") != tt.location || !strings.Contains(body, tt.body) {
				t.Errorf("%d to %q: %s; want %d to %q with %q", resp.StatusCode, resp.Header.Get("Location"), body, tt.status, tt.location, tt.body)
			}
		})
	}
}

func TestNoAccountYet(t *testing.T) {
	none := people{open: true}
	tests := []struct {
		name   string
		opts   access.Options
		path   string
		status int
	}{
		{"everyone is admin on loopback", access.Options{People: none, Anonymous: access.Admin}, apply, 200},
		{"everyone reads where others reach it", access.Options{People: none, Anonymous: access.Viewer}, list, 200},
		{"nobody changes there", access.Options{People: none, Anonymous: access.Viewer}, apply, 403},
		{"nobody reads with TLS", access.Options{People: none}, list, 401},
		{"the first account ends it", access.Options{People: staff, Anonymous: access.Admin}, list, 401},
		{"no accounts at all", access.Options{Anonymous: access.Admin}, list, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := port(t, tt.opts)
			if resp, body := call(t, srv, http.MethodPost, tt.path); resp.StatusCode != tt.status {
				t.Errorf("%d %q, want %d", resp.StatusCode, body, tt.status)
			}
		})
	}
}

// TestStoreDown shows that access closes when nobody can tell who it is.
func TestStoreDown(t *testing.T) {
	srv, registry := port(t, access.Options{People: people{err: errors.New("disk full")}})
	resp, body := call(t, srv, http.MethodPost, list, "Authorization", "Bearer v")
	if resp.StatusCode != 503 || strings.Contains(body, "disk") {
		t.Errorf("%d %q, want 503 without the cause", resp.StatusCode, body)
	}
	if got := refused(t, registry); got["unavailable"] != 1 || len(got) != 1 {
		t.Errorf("counted %v, want one as unavailable", got)
	}
}

// refused returns how many requests a port refused, by reason.
func refused(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" {
					counts[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return counts
}

func TestRequestID(t *testing.T) {
	srv, _ := port(t, access.Options{People: staff})
	for given, kept := range map[string]bool{
		"abc-1.2_3": true, "": false, strings.Repeat("a", 65): false, "a b": false, "a\tb": false, "ä": false,
	} {
		resp, body := call(t, srv, http.MethodPost, login, "X-Request-Id", given)
		id := resp.Header.Get("X-Request-Id")
		if (id == given) != kept || id == "" || !strings.HasSuffix(body, " 127.0.0.1 "+id) {
			t.Errorf("X-Request-Id %q became %q, body %q; kept: want %v", given, id, body, kept)
		}
	}
}

// TestRefusalsAreBounded sends refused requests without end: the audit hears of
// few of them, the metric counts all.
func TestRefusalsAreBounded(t *testing.T) {
	var told []access.Refusal
	srv, registry := port(t, access.Options{People: staff, Refused: func(_ context.Context, r access.Refusal) { told = append(told, r) }})
	for range 5 {
		call(t, srv, http.MethodPost, apply, "Authorization", "Bearer v")
	}
	if len(told) != 1 || told[0].Person.Name != "vera" || told[0].Path != apply || told[0].Reason != "rights" || told[0].From != "127.0.0.1" {
		t.Errorf("told %+v, want one refusal of vera", told)
	}
	for i := range 100 {
		call(t, srv, http.MethodPost, fmt.Sprint("/page", i), "Authorization", "Bearer x")
	}
	if len(told) != 11 {
		t.Errorf("told %d refusals, want 11", len(told))
	}
	for i := range 100 {
		call(t, srv, http.MethodPost, fmt.Sprint(apply, "?", i), "Authorization", "Bearer v", "Sec-Fetch-Site", "cross-site")
		call(t, srv, http.MethodPost, fmt.Sprint("/page", i), "Authorization", "Bearer v", "Sec-Fetch-Site", "cross-site")
	}
	if len(told) != 20 {
		t.Errorf("told %d refusals, want 20", len(told))
	}
	call(t, srv, http.MethodPost, apply)
	call(t, srv, http.MethodPost, "/a.B/C")
	if got := refused(t, registry); got["rights"] != 5 || got["credentials"] != 100 || got["origin"] != 200 || got["anonymous"] != 1 || got["undeclared"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestCookieName(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := access.CookieName(r); got != "grl" {
		t.Errorf("%q in plain text", got)
	}
	r.TLS = &tls.ConnectionState{}
	if got := access.CookieName(r); got != "__Host-grl" {
		t.Errorf("%q with TLS", got)
	}
}
