// Package pagetest has what tests of pages need where no fleet runs behind them.
package pagetest

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/proto/access"
	"grl/web/page"
)

// Memory is a page.Backend that holds what it answers. The zero value knows
// nothing.
type Memory struct {
	Rows    []page.Cell
	Tree    page.Fleet
	Count   page.Counts
	Load    page.Load
	ByZone  map[string][]page.Part // by bucket
	Line    map[string]page.Series // by bucket
	Changes map[string][]page.LimitChange
	History page.Past
}

// Cells implements page.Backend.
func (m Memory) Cells() []page.Cell { return m.Rows }

// Fleet implements page.Backend.
func (m Memory) Fleet() page.Fleet { return m.Tree }

// Counts implements page.Backend.
func (m Memory) Counts() page.Counts { return m.Count }

// Total implements page.Backend.
func (m Memory) Total() page.Load { return m.Load }

// Parts implements page.Backend.
func (m Memory) Parts(bucket, _ string) []page.Part { return m.ByZone[bucket] }

// Series implements page.Backend.
func (m Memory) Series(_ context.Context, q page.SeriesQuery) (page.Series, error) {
	return m.Line[q.Bucket], nil
}

// Sparks implements page.Backend.
func (m Memory) Sparks(_ context.Context, cells []limiter.CellID) ([][]float64, error) {
	out := make([][]float64, len(cells))
	for i := range out {
		out[i] = make([]float64, 72)
		for j := range out[i] {
			out[i][j] = math.NaN()
		}
	}
	return out, nil
}

// Limits implements page.Backend.
func (m Memory) Limits(_ context.Context, bucket, _ string, _ time.Time) ([]page.LimitChange, error) {
	return m.Changes[bucket], nil
}

// Usual implements page.Backend.
func (m Memory) Usual(context.Context, string, limiter.Match) (float64, bool, error) {
	return 0, false, nil
}

// Past implements page.Backend.
func (m Memory) Past() *page.Past { return &m.History }

// Site returns a site over a backend, with assets of made-up names.
func Site(b page.Backend) *page.Site {
	return &page.Site{
		Backend: b, Log: slog.New(slog.DiscardHandler), Version: "v1.4.2",
		Assets: page.Assets{Style: "/assets/grl.css", Icon: "/assets/favicon.svg", Script: "/assets/live.js", HTMX: "/assets/htmx.js"},
	}
}

// Handler serves routes.
func Handler(routes []page.Route) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.Pattern, r.Serve)
	}
	return mux
}

// Admin is a person who may do everything.
var Admin = access.Person{Name: "ada", Level: access.Admin, By: "session", Session: "1"}

// Get asks h for target as who; as htmx does if fragment is set.
func Get(t testing.TB, h http.Handler, who access.Person, target string, fragment bool) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost:7070"+target, nil)
	if fragment {
		r.Header.Set("HX-Request", "true")
	}
	return answer(t, h, who, r)
}

// Post hands in a form as who.
func Post(t testing.TB, h http.Handler, who access.Person, target string, form url.Values) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:7070"+target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return answer(t, h, who, r)
}

func answer(t testing.TB, h http.Handler, who access.Person, r *http.Request) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Identity{Person: &who, From: "127.0.0.1", RequestID: "test"})))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

// Cells are one of each kind.
func Cells() []page.Cell {
	return []page.Cell{
		{Service: "payments", Name: "writes", Owner: "team-payments", Match: "payments.v1.Charges/*", Behavior: limiter.Deny, LimitRPS: 9000, OfferedRPS: 10_624, AdmittedRPS: 9000, DroppedRPS: 1624, Ratio: 0.153, Hosts: 96},
		{Service: "payments", Name: "each-caller", Owner: "team-payments", Match: "* per caller → payments", Caller: "checkout", Behavior: limiter.Allow, LimitRPS: 2500, OfferedRPS: 2683, AdmittedRPS: 2683, ShadowDroppedRPS: 183, Ratio: 0.068, Hosts: 96},
		{Service: "search", Name: "suggest", Owner: "team-search", Match: "web → search.v2.Suggest/Query", Scope: limiter.Region, Instance: "eu", Behavior: limiter.Deny, LimitRPS: 27_100, OfferedRPS: 25_000, AdmittedRPS: 25_000, Hosts: 800},
		{Service: "search", Name: "suggest", Owner: "team-search", Match: "web → search.v2.Suggest/Query", Scope: limiter.Region, Instance: "us", Behavior: limiter.Deny, LimitRPS: 48_400, OfferedRPS: 43_192, AdmittedRPS: 43_192, Hosts: 900, Silent: true},
		{Service: "search", Name: "rebuild", Match: "* → search.v2.Index/Rebuild", Behavior: limiter.Deny, Block: true, OfferedRPS: 3, DroppedRPS: 3, Ratio: 1, Hosts: 2},
		{Service: "catalog", Name: "images", Match: "* → GET /images/{id}", Scope: limiter.Zone, Instance: "eu-1", Behavior: limiter.Deny, LimitRPS: 3100, OfferedRPS: 1402, AdmittedRPS: 1402, Hosts: 40},
	}
}
