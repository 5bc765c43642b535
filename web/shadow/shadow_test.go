package shadow_test

import (
	"fmt"
	"html"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/controller"
	"grl/roles/rolestest"
	"grl/store"
	"grl/web/format"
	"grl/web/page"
	"grl/web/pagetest"
	"grl/web/shadow"
)

// Who looks.
var (
	editor   = access.Person{Name: "ed", Level: access.Editor, By: "session", Session: "2", Services: []string{"shop"}}
	stranger = access.Person{Name: "sam", Level: access.Editor, By: "session", Session: "3", Services: []string{"search"}}
	viewer   = access.Person{Name: "vi", Level: access.Viewer, By: "session", Session: "4"}
)

const shopLimits = `service: shop
owner: team-shop
buckets:
  - {name: safe, match: {procedure: safe}, limit: {rps: 100}, behavior: allow}
  - {name: calm, match: {procedure: calm}, limit: {rps: 200}, behavior: allow}
  - {name: each, match: {caller: "*", procedure: each}, per: caller, limit: {rps: 130}, behavior: allow}
  - {name: wild, match: {procedure: wild}, limit: {rps: 50}, behavior: allow}
  - {name: cand, match: {procedure: cand}, limit: {rps: 100}, behavior: deny, candidate: {rps: 90}}
  - {name: plain, match: {procedure: plain}, limit: {rps: 100}, behavior: deny}
`

const hostile = `"><script>alert(1)</script>` + "\u202e"

// shop is a controller with eight days of history, as the test wrote it, from a
// Saturday on.
type shop struct {
	http.Handler
	t     *testing.T
	store *store.Store
}

// open returns a shop whose figures are computed. Call it in a bubble.
func open(t *testing.T) *shop {
	t.Helper()
	config := controller.Default()
	config.Limits = t.TempDir()
	if err := os.WriteFile(filepath.Join(config.Limits, "shop.yaml"), []byte(shopLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	c, err := controller.New(t.Context(), controller.Options{
		Config: config, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Store: st, AnyHost: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{c.Handler(), t, st}
	from := time.Now()
	time.Sleep(8*24*time.Hour + time.Minute)
	for hour := from; hour.Before(time.Now()); hour = hour.Add(time.Hour) {
		s.write(hour)
	}
	done := make(chan error)
	go func() { done <- c.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(5 * time.Second)
	synctest.Wait()
	return s
}

// write writes what all cells counted in an hour.
func (s *shop) write(hour time.Time) {
	s.t.Helper()
	evening := (hour.Weekday() == time.Friday || hour.Weekday() == time.Saturday) && hour.Hour() >= 19 && hour.Hour() < 23
	rows := func(yield func(*store.CellHour) bool) {
		row := &store.CellHour{Zone: "z1"}
		put := func(name, caller string, rps, lost, highest uint64) bool {
			row.Cell = limiter.CellID{Bucket: "shop/" + name, Caller: caller}
			for m := range row.Minutes {
				row.Minutes[m] = store.Minute{Offered: rps * 60, Admitted: rps * 60, ShadowDropped: lost, HighestSecond: highest}
			}
			return yield(row)
		}
		lost, highest := uint64(0), uint64(120)
		if evening {
			lost, highest = 90, 142
		}
		_ = put("safe", "", 60, 0, 85) && put("calm", "", 10, 0, 20) && put("each", "checkout", 100, lost, highest) &&
			put("each", hostile, 100, lost/90, 131) && put("wild", "", 100, 3000, 120) && put("cand", "", 70, 0, 80) && put("plain", "", 40, 0, 50)
	}
	if err := s.store.PutHours(s.t.Context(), hour, iter.Seq[*store.CellHour](rows)); err != nil {
		s.t.Fatal(err)
	}
}

// sums adds what the cells of a bucket counted, minute by minute.
func (s *shop) sums(bucket string) (offered, lost float64) {
	s.t.Helper()
	for _, id := range s.store.CellsOf(bucket) {
		minutes, err := s.store.Minutes(s.t.Context(), id, time.Now().Add(-store.Keep), time.Now().Add(time.Hour))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range minutes {
			offered += float64(m.Offered)
			lost += float64(m.ShadowDropped)
		}
	}
	return offered, lost
}

func (s *shop) get(who access.Person, target string, want int) string {
	s.t.Helper()
	r, body := pagetest.Get(s.t, s, who, target, false)
	if r.StatusCode != want {
		s.t.Fatalf("GET %s: %d, want %d: %s", target, r.StatusCode, want, words(body))
	}
	return body
}

// post hands in a form and returns the answer and where it leads.
func (s *shop) post(who access.Person, form url.Values, want int) (body, to string) {
	s.t.Helper()
	r, body := pagetest.Post(s.t, s, who, "/shadow/promote", form)
	if r.StatusCode != want {
		s.t.Fatalf("POST %v: %d, want %d: %s", form, r.StatusCode, want, words(body))
	}
	return body, r.Header.Get("Location")
}

// behavior returns that of a bucket now, as the API has it.
func (s *shop) behavior(bucket string) grlv1.Behavior {
	s.t.Helper()
	server := rolestest.AsAdmin(s.Handler)
	var network rolestest.Network
	network.Serve(s.t, "controller", server)
	answer, err := grlv1connect.NewViewServiceClient(network.Client(s.t), "http://controller").ListBuckets(s.t.Context(), &grlv1.ListBucketsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	network.Cut("controller")
	for _, b := range answer.GetBuckets() {
		if b.GetBucket() == bucket {
			return b.GetBehavior()
		}
	}
	s.t.Fatalf("no bucket %s", bucket)
	return 0
}

var (
	tags   = regexp.MustCompile(`(?s)<svg.*?</svg>|<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
	rowAt  = regexp.MustCompile(`<div class="verdict" id="limit-[0-9a-f]+">`)
)

// words returns the text of a page.
func words(body string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(body, " ")), " "))
}

// rows returns the limits of a page, by name, and their order.
func rows(body string) (of map[string]string, order []string) {
	of = make(map[string]string)
	at := rowAt.FindAllStringIndex(body, -1)
	for i, begin := range at {
		end := len(body)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		text := body[begin[0]:end]
		name := regexp.MustCompile(`href="/bucket\?name=([^"&]*)`).FindStringSubmatch(text)
		if name == nil {
			continue
		}
		bucket, _ := url.QueryUnescape(name[1])
		of[bucket] = text
		order = append(order, bucket)
	}
	return of, order
}

// says fails unless a text has all parts; those after "!" it must not have.
func says(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if not, unwanted := strings.CutPrefix(p, "!"); unwanted == strings.Contains(text, strings.TrimPrefix(p, "!")) {
			t.Errorf("%s: %q is there %v, in:\n%s", what, not, unwanted, text[max(0, strings.Index(text, "Built without")):])
		}
	}
}

func TestVerdictsOfHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		body := s.get(editor, "/shadow", http.StatusOK)
		of, order := rows(body)
		if got := strings.Join(order, " "); got != "shop/calm shop/cand shop/safe shop/each shop/wild" {
			t.Errorf("order = %s", got)
		}
		says(t, "page", words(body), "4 buckets in shadow and 1 candidate", "judged over up to 8 days", "All 5", "Safe to enforce 3", "Would hurt 2", "Too little data 0", "!shop/plain")
		offered, _ := s.sums("shop/safe")
		says(t, "safe", words(of["shop/safe"]), "Safe to enforce", "Would have dropped nothing in 8 days. The highest second reached 85% of the limit.",
			"Limit 100 rps", "Virtual drops 0 of "+format.Size(offered), "Promote", "!anyway")
		says(t, "candidate", words(of["shop/cand"]), "The highest second reached 89% of the candidate.", "Candidate 90.0 rps", "Limit today 100 rps")
		offered, lost := s.sums("shop/each")
		says(t, "each", words(of["shop/each"]), "Would hurt checkout on Friday and Saturday evenings", "100% of its virtual drops fall then, between 18:00 and 24:00 UTC", "Raise to 150 rps to drop nothing.",
			"130 rps per caller", "Virtual drops "+format.Share(lost/offered)+" of "+format.Size(offered), "Most hit caller checkout, 99%", "Try another limit", "Promote anyway", "Darkest cell: 1.5% of the requests of that hour")
		says(t, "wild", words(of["shop/wild"]), "Would hurt its callers at any time", "50.0% of "+format.Size(func() float64 { o, _ := s.sums("shop/wild"); return o }()))
		if strings.Contains(body, "<script>alert") || strings.ContainsRune(body, '\u202e') {
			t.Error("a hostile caller is printed as it is")
		}
		for target, want := range map[string]string{
			"/shadow?verdict=safe&sort=name":        "shop/calm shop/cand shop/safe",
			"/shadow?verdict=hurt":                  "shop/each shop/wild",
			"/shadow?sort=worst":                    "shop/wild shop/each shop/calm shop/cand shop/safe",
			"/shadow?sort=drops&q=CHECKOUT":         "shop/each",
			"/shadow?service=shop&q=team-shop+calm": "shop/calm",
			"/shadow?service=none":                  "",
			"/shadow?verdict=x&sort=x&page=-5":      "shop/calm shop/cand shop/safe shop/each shop/wild",
		} {
			if _, order := rows(s.get(viewer, target, http.StatusOK)); strings.Join(order, " ") != want {
				t.Errorf("%s shows %v, want %s", target, order, want)
			}
		}
		if _, order := rows(s.get(viewer, "/shadow?open=shop/wild", http.StatusOK)); len(order) != 5 {
			t.Errorf("with a map open: %v", order)
		}
		r, region := pagetest.Get(t, s, viewer, "/shadow", true)
		if r.StatusCode != http.StatusOK || strings.Contains(region, "<html") || !strings.Contains(region, "Safe to enforce") {
			t.Errorf("region: %d, %s", r.StatusCode, words(region))
		}
	})
}

func TestWhoSeesWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		for _, who := range []access.Person{viewer, stranger} {
			body := s.get(who, "/shadow", http.StatusOK)
			says(t, who.Name, body, "!/shadow/promote", "!tick-box", "!Promote anyway")
			said := words(s.get(who, "/shadow/promote?bucket=shop/safe", http.StatusForbidden))
			says(t, who.Name, said, "You can look, not change")
			if who.Level == access.Editor {
				says(t, who.Name, said, "Editors of shop: team-shop.")
			}
			s.post(who, url.Values{"do": {"promote"}, "bucket": {"shop/safe"}}, http.StatusForbidden)
		}
		body := s.get(editor, "/shadow", http.StatusOK)
		says(t, "editor", body, `form="promote" name="bucket" value="shop/safe"`, `action="/shadow/promote"`, `name="base" value="1"`)
		if got := s.behavior("shop/safe"); got != grlv1.Behavior_BEHAVIOR_ALLOW {
			t.Errorf("behavior = %v", got)
		}
	})
}

func TestPromote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		says(t, "review", words(s.get(editor, "/shadow/promote?bucket=shop/safe", http.StatusOK)), "Promote shop/safe", "Would have dropped nothing in 8 days",
			"- behavior: allow", "+ behavior: deny", "Safe to enforce: 0 of 41.7M requests dropped in the time judged.", "!Yes, enforce")
		_, to := s.post(editor, url.Values{"do": {"promote"}, "bucket": {"shop/safe"}, "base": {"1"}, "reason": {"a quiet week <b>"}}, http.StatusSeeOther)
		if to != "/shadow/promoted?revision=2" {
			t.Fatalf("leads to %s", to)
		}
		says(t, "promoted", words(s.get(editor, to, http.StatusOK)), "Promoted 1 limit: saved as r2 and active", "shop/ safe", "r2 by ed", "a quiet week <b>", "+ behavior: deny")
		if got := s.behavior("shop/safe"); got != grlv1.Behavior_BEHAVIOR_DENY {
			t.Errorf("behavior = %v", got)
		}
		time.Sleep(2 * time.Second) // the figures of now are that old at most
		if of, _ := rows(s.get(editor, "/shadow", http.StatusOK)); of["shop/safe"] != "" {
			t.Error("still in shadow")
		}
		says(t, "again", words(s.get(editor, "/shadow/promote?bucket=shop/safe", http.StatusNotFound)), "Not in shadow, and without a candidate")
		s.get(editor, "/shadow/promoted?revision=1&revision=x&revision=-1", http.StatusNotFound) // which promoted nothing

		// Several at once: each is a revision.
		several := url.Values{"bucket": {"shop/calm", "shop/cand", "shop/calm"}, "base": {"1"}}
		several.Set("do", "preview")
		if _, to := s.post(editor, several, http.StatusSeeOther); to != "/shadow/promote?bucket=shop%2Fcalm&bucket=shop%2Fcand" {
			t.Errorf("preview leads to %s", to)
		} else {
			says(t, "preview", words(s.get(editor, to, http.StatusOK)), "Promote 2 limits", "All safe to enforce: 0 of", "+ limit: {rps: 90}")
		}
		several.Set("do", "promote")
		_, to = s.post(editor, several, http.StatusSeeOther)
		says(t, "both", words(s.get(viewer, to, http.StatusOK)), "Promoted 2 limits: saved as r3 to r4 and active", "shop/ calm", "shop/ cand", "- candidate: {rps: 90}")
		if got := s.behavior("shop/calm"); got != grlv1.Behavior_BEHAVIOR_DENY {
			t.Errorf("behavior = %v", got)
		}
	})
}

func TestPromoteIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		form := func(force, reason, base string, buckets ...string) url.Values {
			return url.Values{"do": {"promote"}, "bucket": buckets, "base": {base}, "force": {force}, "reason": {reason}}
		}
		// A guard rail stands against one of two: none is promoted.
		body, _ := s.post(editor, form("", "because", "1", "shop/safe", "shop/wild"), http.StatusUnprocessableEntity)
		says(t, "rail", words(body), "Nothing was promoted", "Guard rails stand against 1 limit.", "Would have dropped 50 %", "only an admin can pass it", "1 would hurt, 1 safe to enforce: ")
		says(t, "rail", body, `value="because"`, "disabled", "!name=\"force\"")
		s.post(editor, form("yes", "because", "1", "shop/wild"), http.StatusForbidden)
		body, _ = s.post(pagetest.Admin, form("", "", "1", "shop/wild"), http.StatusUnprocessableEntity)
		says(t, "admin", body, `name="force"`)
		body, _ = s.post(pagetest.Admin, form("yes", "", "1", "shop/wild"), http.StatusUnprocessableEntity)
		says(t, "no reason", words(body), "a reason is missing", "To pass the guard rails needs a reason.")
		for _, b := range []string{"shop/safe", "shop/wild"} {
			if s.behavior(b) != grlv1.Behavior_BEHAVIOR_ALLOW {
				t.Errorf("%s was promoted", b)
			}
		}
		_, to := s.post(pagetest.Admin, form("yes", "I know", "1", "shop/wild"), http.StatusSeeOther)
		says(t, "forced", words(s.get(viewer, to, http.StatusOK)), "By force", "I know")

		// Somebody changed one of two meanwhile.
		s.change(strings.Replace(shopLimits, "name: safe, match: {procedure: safe}, limit: {rps: 100}", "name: safe, match: {procedure: safe}, limit: {rps: 40}", 1))
		body, _ = s.post(editor, form("", "", "1", "shop/safe", "shop/calm"), http.StatusConflict)
		says(t, "stale", words(body), "Nothing was promoted", "r3 changed it while you were looking", "- limit: {rps: 100}", "+ limit: {rps: 40}", "r3 by admin: sale")
		says(t, "stale", body, `name="base" value="3"`)
		if s.behavior("shop/calm") != grlv1.Behavior_BEHAVIOR_ALLOW {
			t.Error("the other one was promoted")
		}
		for _, tt := range []struct {
			form url.Values
			want int
		}{
			{url.Values{"do": {"promote"}}, http.StatusUnprocessableEntity},
			{form("", "", "1", "shop/none"), http.StatusNotFound},
			{form("", "", "99", "shop/calm"), http.StatusUnprocessableEntity},
			{form("", "", "3", many(51)...), http.StatusUnprocessableEntity},
			{form("", strings.Repeat("x", 5000), "3", "shop/calm"), http.StatusUnprocessableEntity},
			{form("", "", "3", hostile), http.StatusNotFound},
		} {
			s.post(editor, tt.form, tt.want)
		}
	})
}

func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("shop/b", i)
	}
	return list
}

// change applies a limits file as somebody else.
func (s *shop) change(text string) {
	s.t.Helper()
	var network rolestest.Network
	network.Serve(s.t, "controller", rolestest.AsAdmin(s.Handler))
	base := uint64(1)
	_, err := grlv1connect.NewConfigServiceClient(network.Client(s.t), "http://controller").Apply(s.t.Context(), &grlv1.ApplyRequest{
		Files: []*grlv1.LimitsFile{{Name: "shop", Data: []byte(text)}}, Base: &base, Force: true, Reason: "sale",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	network.Cut("controller")
}

func TestChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		for buckets, want := range map[string]string{
			"":                              "Tick limits to promote several at once.",
			"shop/none":                     "Tick limits to promote several at once.",
			"shop/safe":                     "safe to enforce: 0 of 41.7M requests dropped in the time judged",
			"shop/safe,shop/calm":           "all safe to enforce: 0 of 48.6M requests",
			"shop/wild,shop/safe,shop/safe": "1 would hurt, 1 safe to enforce: 31.2% of 111M requests",
		} {
			form := url.Values{"bucket": strings.Split(buckets, ",")}
			r, body := pagetest.Post(t, s, viewer, "/shadow/chosen", form)
			if r.StatusCode != http.StatusOK || !strings.HasPrefix(words(body), want) {
				t.Errorf("%s: %d, %s; want %s", buckets, r.StatusCode, words(body), want)
			}
		}
	})
}

// TestPromotedHoldsAtHosts promotes in a fleet that runs.
func TestPromotedHoldsAtHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rolestest.NewPlane(t, shopLimits)
		p.Controller()
		p.Aggregator("a", "z1", "eu")
		p.Host("h", "z1", "eu", "shop", "a")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		_, body := pagetest.Get(t, p.Pages(), editor, "/shadow", false)
		of, _ := rows(body)
		says(t, "calm", words(of["shop/calm"]), "Too little data", "Nothing was counted yet", "Open", "!Promote")
		r, body := pagetest.Post(t, p.Pages(), editor, "/shadow/promote", url.Values{"do": {"promote"}, "bucket": {"shop/calm"}, "base": {"1"}})
		if r.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d: %s", r.StatusCode, words(body))
		}
		time.Sleep(15 * time.Second) // hosts say now and then what they hold
		_, body = pagetest.Get(t, p.Pages(), editor, r.Header.Get("Location"), false)
		says(t, "promoted", words(body), "saved as r2 and active", "1 of 1 host confirmed it.")
	})
}

// crowd is a backend with so many cells, of which the first 20,000 are in shadow
// and judged.
func crowd(cells int) pagetest.Memory {
	m := pagetest.Memory{History: page.Past{At: time.Now(), Read: 1, LeftOut: 3}}
	hours := make([]verdict.Hour, 8*24)
	for i := range hours {
		hours[i] = verdict.Hour{Known: true, Offered: 1e6, Highest: 500}
		if i%24 > 18 {
			hours[i].Dropped, hours[i].Highest = 2e4, 1400
		}
	}
	v := verdict.Judge(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), hours)
	curve := make([]float32, 72)
	for i := range curve {
		curve[i] = float32(700 + 600*math.Sin(float64(i)))
	}
	for i := range cells {
		c := page.Cell{Service: fmt.Sprint("service", i%500), Name: fmt.Sprint("bucket", i) + hostile, Match: strings.Repeat("long/", 100), Owner: hostile, LimitRPS: 1000, Behavior: limiter.Deny}
		if i < 20_000 {
			c.Behavior = limiter.Allow
			m.History.Evidence = append(m.History.Evidence, page.Evidence{Cell: c.ID(), LimitRPS: 1000, Verdict: v, Curve: curve, HitCaller: hostile, HitShare: 0.5})
		}
		m.Rows = append(m.Rows, c)
	}
	return m
}

// A page has 50 rows and at most 300 KB, whatever there is behind it.
func TestSize(t *testing.T) {
	h := pagetest.Handler(shadow.Routes(pagetest.Site(crowd(60_000))))
	for _, target := range []string{"/shadow", "/shadow?page=400&sort=name", "/shadow?page=9999999"} {
		began := time.Now()
		r, body := pagetest.Get(t, h, pagetest.Admin, target, false)
		if _, order := rows(body); r.StatusCode != http.StatusOK || len(order) != 50 {
			t.Errorf("%s: %d with %d rows", target, r.StatusCode, len(order))
		}
		t.Logf("%s: %d KB in %v", target, len(body)/1000, time.Since(began))
		if len(body) > 300_000 {
			t.Errorf("%s has %d bytes, at most 300 KB", target, len(body))
		}
		says(t, target, words(body), "of 20,000", "3 cells with history beyond what is kept in memory: not judged")
		if strings.Contains(body, "<script>alert") || strings.ContainsRune(body, '\u202e') {
			t.Error("a hostile name is printed as it is")
		}
	}
}

func TestEmptyAndReading(t *testing.T) {
	for name, tt := range map[string]struct {
		backend pagetest.Memory
		want    []string
	}{
		"nothing is in shadow": {pagetest.Memory{History: page.Past{At: time.Now(), Read: 1}}, []string{"Nothing is in shadow", "0 buckets in shadow and 0 candidates", "!being read"}},
		"the history is read":  {pagetest.Memory{Rows: pagetest.Cells(), History: page.Past{Read: 0.4}}, []string{"The history is being read: 40.0%", "each-caller", "Nothing was counted yet"}},
	} {
		_, body := pagetest.Get(t, pagetest.Handler(shadow.Routes(pagetest.Site(tt.backend))), viewer, "/shadow", false)
		says(t, name, words(body), tt.want...)
	}
}

// BenchmarkPage renders the page over 100,000 cells, of which 20,000 are judged.
func BenchmarkPage(b *testing.B) {
	h := pagetest.Handler(shadow.Routes(pagetest.Site(crowd(100_000))))
	for b.Loop() {
		pagetest.Get(b, h, pagetest.Admin, "/shadow", false)
	}
}
