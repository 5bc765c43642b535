package changes_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/rolestest"
	"grl/web/page"
	"grl/web/pagetest"
)

var (
	viewer = access.Person{Name: "vi", Level: access.Viewer, By: "session", Session: "2"}
	editor = access.Person{Name: "ed", Level: access.Editor, By: "session", Session: "3", Services: []string{"payments"}}
	other  = access.Person{Name: "ot", Level: access.Editor, By: "session", Session: "4", Services: []string{"search"}}
	tags   = regexp.MustCompile(`<[^>]*>`)
)

// plain is the text of a page, or of its part that is not on all pages.
func plain(body string) string {
	if _, main, found := strings.Cut(body, "<main"); found {
		body = "<main" + main
	}
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// file is a limits file of a service with buckets as name=rps; ~ before the rps is
// shadow.
func file(service string, buckets ...string) *grlv1.LimitsFile {
	var b strings.Builder
	fmt.Fprintf(&b, "service: %s\nowner: team-%s\nbuckets:\n", service, service)
	for _, bucket := range buckets {
		name, rps, _ := strings.Cut(bucket, "=")
		behavior := "deny"
		if shadow, ok := strings.CutPrefix(rps, "~"); ok {
			rps, behavior = shadow, "allow"
		}
		fmt.Fprintf(&b, "  - {name: %s, match: {procedure: %s/*}, limit: {rps: %s}, behavior: %s}\n", name, name, rps, behavior)
	}
	return &grlv1.LimitsFile{Name: service + ".yaml", Data: []byte(b.String())}
}

// shop is a control plane with one host of payments, whose configuration comes
// through the API.
type shop struct {
	*rolestest.Plane
	t testing.TB
}

// open starts the fleet, and sends 200 requests a second to writes until the test
// ends.
func open(t testing.TB) *shop {
	p := rolestest.NewPlane(t)
	p.Controller()
	p.Aggregator("a", "z1", "r1")
	host := p.Host("h", "z1", "r1", "payments", "a")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second / 200):
				host.Service("payments").Decide("checkout", "writes/Create")
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return &shop{p, t}
}

// apply makes a revision, by force.
func (s *shop) apply(reason string, files ...*grlv1.LimitsFile) uint64 {
	s.t.Helper()
	head := s.head()
	answer, err := s.Config().Apply(s.t.Context(), &grlv1.ApplyRequest{Files: files, Base: &head, Force: true, Now: true, Reason: reason})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.GetOutcome().GetRevision().GetNumber()
}

func (s *shop) head() uint64 {
	s.t.Helper()
	answer, err := s.Config().ListRevisions(s.t.Context(), &grlv1.ListRevisionsRequest{PageSize: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range answer.GetRevisions() {
		return r.GetNumber()
	}
	return 0
}

func (s *shop) audit() []*grlv1.AuditEntry {
	s.t.Helper()
	answer, err := grlv1connect.NewAuditServiceClient(s.Network.Client(s.t), "http://controller").ListAudit(s.t.Context(), &grlv1.ListAuditRequest{PageSize: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.GetEntries()
}

// limit is what the configuration says of payments/writes.
func (s *shop) limit() string {
	s.t.Helper()
	answer, err := s.Config().GetConfiguration(s.t.Context(), &grlv1.GetConfigurationRequest{Service: "payments"})
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(answer.GetFiles()[0].GetData()), "name: writes")
	_, rest, _ = strings.Cut(rest, "rps: ")
	limit, _, _ := strings.Cut(rest, "}")
	return limit
}

func (s *shop) get(who access.Person, target string, fragment bool) (status int, body, text string) {
	s.t.Helper()
	r, body := pagetest.Get(s.t, s.Pages(), who, target, fragment)
	if r.StatusCode == http.StatusOK && len(body) > 300<<10 {
		s.t.Errorf("%s has %d bytes", target, len(body))
	}
	return r.StatusCode, body, plain(body)
}

func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s: no %q in\n%s", what, p, text)
		}
	}
}

func lacks(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%s: %q in\n%s", what, p, text)
		}
	}
}

// TestList: each kind of change in the words of the page, and each filter.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		if _, _, text := s.get(pagetest.Admin, "/changes", false); !strings.Contains(text, "Nothing was changed yet") {
			t.Errorf("at first: %s", text)
		}
		s.apply("first", file("payments", "writes=100", "reads=~50"), file("search", "q=5"))
		s.apply("the sale", file("payments", "writes=150", "reads=~50"))
		s.apply("safe", file("payments", "writes=150", "reads=50"))
		s.apply("gone", file("payments", "writes=150"))
		if _, err := s.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{Service: "payments", Caller: "promo", DurationMs: 600_000, Reason: "incident 12", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 40}}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Network.Client(t).Get("http://controller/changes") // of nobody, not in the audit
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		_, body, text := s.get(pagetest.Admin, "/changes", false)
		wants(t, "the page", text,
			"Today, Sat 1 Jan", "r1", "3 buckets applied", "limit 100 → 150 Forced the sale", "behavior allow → deny Forced safe", "limit 50.0 → removed Forced gone",
			"cap promo → payments cap none → 40.0 rps until ", "incident 12", "Entries 1 to 5", "audit chain whole up to entry ")
		wants(t, "the page", body, `href="/bucket?name=payments%2Fwrites"`, `<th scope="rowgroup"`, `href="/changes/rollback?entry=2"`, `class="visually-hidden">Changes, newest first</caption>`)

		until := func(query string) string {
			_, _, text := s.get(pagetest.Admin, "/changes?"+query, false)
			_, rows, _ := strings.Cut(text, "Who Action ")
			rows, _, _ = strings.Cut(rows, "Times in your zone")
			return rows
		}
		for _, tt := range []struct {
			query    string
			has, not []string
		}{
			{"what=caps", []string{"cap none"}, []string{"the sale", "first"}},
			{"what=limits", []string{"the sale", "safe", "first"}, []string{"cap none"}},
			{"what=behavior", []string{"safe"}, []string{"the sale", "cap none", "gone"}},
			{"what=refused", nil, []string{"safe", "cap none"}},
			{"subject=search", []string{"first"}, []string{"the sale", "cap none"}},
			{"subject=payments%2Freads", []string{"safe", "gone", "first"}, []string{"the sale"}},
			{"subject=pay", nil, []string{"the sale"}},
			{"q=SALE", []string{"the sale"}, []string{"safe"}},
			{"q=r3", []string{"safe"}, []string{"the sale"}},
			{"q=rps%3A+150", []string{"the sale"}, []string{"incident"}},
			{"who=nobody", nil, []string{"the sale"}},
			{"since=day", []string{"the sale"}, nil},
			{"revision=2", []string{"the sale", "- limit: {rps: 100}", "+ limit: {rps: 150}", "r1 → r2"}, []string{"safe"}},
			{"before=3", []string{"the sale", "first"}, []string{"safe"}},
			{"before=x&open=y&revision=z&what=w&since=v", []string{"the sale", "first", "safe"}, nil},
		} {
			rows := until(tt.query)
			wants(t, tt.query, rows, tt.has...)
			lacks(t, tt.query, rows, tt.not...)
		}
		_, _, text = s.get(pagetest.Admin, "/changes?q=chekout", false)
		wants(t, "nothing", text, "No change matches", "Clear filters")
	})
}

// TestNewer: a page that is looked at says what came since, and only what its
// filters select.
func TestNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		newer := regexp.MustCompile(`hx-get="(/changes/newer[^"]*)"`)
		_, body, _ := s.get(pagetest.Admin, "/changes?what=limits", false)
		url := newer.FindStringSubmatch(body)
		if url == nil {
			t.Fatalf("the page does not look for newer entries: %s", body)
		}
		since := html.UnescapeString(url[1])
		status, body, text := s.get(pagetest.Admin, since, true)
		if status != http.StatusOK || text != "" {
			t.Errorf("nothing newer: %d %q", status, body)
		}
		s.apply("the sale", file("payments", "writes=150"))
		if _, err := s.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{Service: "payments", Caller: "promo", DurationMs: 600_000, Reason: "incident 12", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 40}}); err != nil {
			t.Fatal(err)
		}
		_, body, text = s.get(pagetest.Admin, since, true)
		wants(t, "one newer of limits, and a cap", text, "1 newer entry: Show")
		wants(t, "one newer of limits, and a cap", body, `href="/changes?what=limits"`)
		for i := range 51 {
			s.apply("again", file("payments", "writes="+strconv.Itoa(151+i)))
		}
		_, _, text = s.get(pagetest.Admin, since, true)
		wants(t, "many", text, "More than 50 newer entries: Show")
		if _, body, _ = s.get(pagetest.Admin, "/changes?before=3", false); newer.MatchString(body) {
			t.Error("an older page looks for newer entries")
		}
	})
}

// TestOpened: an entry opens in place with what it was before and after, who made
// it, and the way back; the page is that of an address.
func TestOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		s.apply("the <b>sale</b>", file("payments", "writes=150"))
		_, body, text := s.get(pagetest.Admin, "/changes?open=2", false)
		wants(t, "opened", text, "r1 → r2", "- limit: {rps: 100}", "+ limit: {rps: 150}", "What rolling it back would do now", "Roll back r2", "Reason the <b>sale</b>", "Guard rails passed by force")
		wants(t, "opened", body, `aria-expanded="true"`, `href="/changes#e2"`, `hx-get="/changes/rollback?entry=2"`)
		lacks(t, "opened", body, "<b>sale")
		hash := s.audit()[0].GetHash()
		wants(t, "opened", text, fmt.Sprintf("Hash %x…", hash[:8]))
		if _, body, _ := s.get(viewer, "/changes?open=2", false); strings.Contains(body, "/changes/rollback") {
			t.Error("a viewer is shown the way back")
		}
		if _, body, _ := s.get(other, "/changes?open=2", false); strings.Contains(body, "/changes/rollback") {
			t.Error("an editor of another service is shown the way back")
		}
		if _, body, _ := s.get(editor, "/changes?open=2", false); !strings.Contains(body, "/changes/rollback") {
			t.Error("the editor of the service is not shown the way back")
		}
	})
}

// TestPages: by the numbers of entries, without one twice or left out; the pages of
// very long entries are bounded.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		for i := range 119 {
			if _, err := s.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{Service: "payments", Caller: fmt.Sprintf("caller-%03d", i), DurationMs: 600_000, Reason: strings.Repeat("x", 600), Gate: &grlv1.PlaceCapRequest_Block{Block: true}}); err != nil {
				t.Fatal(err)
			}
		}
		seen := make(map[string]int)
		pages, target := 0, "/changes"
		for target != "" && pages < 10 {
			_, body, _ := s.get(pagetest.Admin, target, false)
			for _, m := range regexp.MustCompile(`<tr id="(e\d+)"`).FindAllStringSubmatch(body, -1) {
				seen[m[1]]++
			}
			target = ""
			if m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); m != nil {
				target = html.UnescapeString(m[1])
			}
			pages++
		}
		if pages != 3 || len(seen) != 120 {
			t.Errorf("%d entries on %d pages, want 120 on 3", len(seen), pages)
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s is on %d pages", id, n)
			}
		}
	})
}

// TestExport: a line for each entry, as the API has it, of the same filters.
func TestExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		for i := range 130 {
			if _, err := s.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{Service: "payments", Caller: fmt.Sprint("caller-", i), DurationMs: 60_000, Reason: "x", Gate: &grlv1.PlaceCapRequest_Block{Block: true}}); err != nil {
				t.Fatal(err)
			}
		}
		r, body := pagetest.Get(t, s.Pages(), viewer, "/changes/export", false)
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/jsonl") {
			t.Fatalf("status %d, %v", r.StatusCode, r.Header)
		}
		lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		entries := s.audit()
		if len(lines) != len(entries) {
			t.Fatalf("%d lines, want %d", len(lines), len(entries))
		}
		for i, line := range lines {
			var e struct{ Number, Hash, Reason string }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Number != strconv.FormatUint(entries[i].GetNumber(), 10) || e.Reason != entries[i].GetReason() || e.Hash == "" {
				t.Fatalf("line %d: %s, %v; want entry %v", i+1, line, err, entries[i])
			}
		}
		if _, body := pagetest.Get(t, s.Pages(), viewer, "/changes/export?what=limits", false); strings.Count(body, "\n") != 1 {
			t.Errorf("of limits alone: %.500s", body)
		}
	})
}

// TestRollback: what it would do is what the live figures of the API say, it is
// done after it was seen, and the page reads back what was made.
func TestRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=60", "reads=50"))
		s.apply("more", file("payments", "writes=180", "reads=50")) // r2
		s.apply("reads", file("payments", "writes=180", "reads=60"))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		const target = "/changes/rollback?entry=2"
		status, body, text := s.get(pagetest.Admin, target, false)
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, text)
		}
		wants(t, "the page", text, "Roll back r2", "- limit: {rps: 180}", "+ limit: {rps: 60}", "is below half of", "Yes, pass the guard rails", "Changes 1 bucket", "A roll back makes a new revision, r4, without what r2 changed.")
		// The sentence again, from the API alone.
		offered, dropped := 0.0, 0.0
		for _, b := range s.Buckets() {
			if b.GetBucket() == "payments/writes" {
				offered, dropped = offered+b.GetOfferedRps(), dropped+b.GetDroppedRps()
			}
		}
		said := regexp.MustCompile(`would drop ([0-9.]+)% instead of ([0-9.]+)%`).FindStringSubmatch(text)
		if said == nil {
			t.Fatalf("no effect in %s", text)
		}
		then, _ := strconv.ParseFloat(said[1], 64)
		now, _ := strconv.ParseFloat(said[2], 64)
		if want := (offered - 60) / offered * 100; math.Abs(then-want) > 0.3 || want < 68 || want > 72 {
			t.Errorf("would drop %v %%, want %.1f %% of %.1f rps", then, want, offered)
		}
		if want := dropped / offered * 100; math.Abs(now-want) > 0.3 {
			t.Errorf("drops %v %%, want %.1f %%", now, want)
		}
		if _, fragment, _ := s.get(pagetest.Admin, target, true); strings.Contains(fragment, "<html") || !strings.Contains(plain(fragment), said[0]) {
			t.Errorf("to htmx: %s", fragment)
		}
		if s.head() != 3 {
			t.Fatal("to look changed something")
		}
		seen := regexp.MustCompile(`name="seen" value="(\d+)"`).FindStringSubmatch(body)[1]
		form := url.Values{"entry": {"2"}, "seen": {seen}, "reason": {""}, "force": {"yes"}}
		post := func(who access.Person) (*http.Response, string) {
			r, body := pagetest.Post(t, s.Pages(), who, "/changes/rollback", form)
			return r, plain(body)
		}
		if r, text := post(pagetest.Admin); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "Is empty.") {
			t.Errorf("without a reason: %d %s", r.StatusCode, text)
		}
		form.Set("reason", "too much")
		form.Set("force", "")
		if r, text := post(pagetest.Admin); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "pass the guard rails") || s.head() != 3 {
			t.Errorf("without a yes, far below the peak: %d %s", r.StatusCode, text)
		} else if !strings.Contains(text, "Roll back r2") {
			t.Errorf("the form is gone: %s", text)
		}
		form.Set("force", "yes")
		r, text := post(pagetest.Admin)
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/changes?done=4" {
			t.Fatalf("status %d to %s: %s", r.StatusCode, r.Header.Get("Location"), text)
		}
		if s.limit() != "60" {
			t.Errorf("limit %s, want 60", s.limit())
		}
		time.Sleep(12 * time.Second) // hosts are listed each 10 s
		synctest.Wait()
		_, _, text = s.get(pagetest.Admin, "/changes?done=4", false)
		wants(t, "after", text, "Saved as r4 and active 1 of 1 host confirmed it. Roll back", "limit 180 → 60.0 Forced too much")
		if _, _, text := s.get(pagetest.Admin, "/changes?done=99", false); !strings.Contains(text, "There is no r99") {
			t.Error("a revision that is not there is said to be saved")
		}
		if _, _, text := s.get(pagetest.Admin, target, false); !strings.Contains(text, "Nothing would change") {
			t.Errorf("once more: %s", text)
		}
		form.Set("seen", "4")
		if r, text := post(pagetest.Admin); r.StatusCode != http.StatusConflict || !strings.Contains(text, "Not rolled back: there is nothing to roll back") {
			t.Errorf("sent once more: status %d: %s", r.StatusCode, text)
		}
	})
}

// TestRollbackMeanwhile: what was changed since the page was made, or in the same
// bucket, is not changed over the head of whoever did.
func TestRollbackMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		s.apply("more", file("payments", "writes=110"))
		form := url.Values{"entry": {"2"}, "seen": {"2"}, "reason": {"too much"}, "force": {"yes"}}
		s.apply("search", file("search", "q=5"))
		r, body := pagetest.Post(t, s.Pages(), pagetest.Admin, "/changes/rollback", form)
		text := plain(body)
		if r.StatusCode != http.StatusConflict {
			t.Errorf("status %d", r.StatusCode)
		}
		wants(t, "moved on", text, "Not rolled back: r3 was made while you were looking", "+ limit: {rps: 100}")
		wants(t, "moved on", body, `name="seen" value="3"`, `value="too much"`)

		s.apply("more still", file("payments", "writes=120"))
		status, _, text := s.get(pagetest.Admin, "/changes/rollback?entry=2", false)
		if status != http.StatusConflict {
			t.Errorf("status %d", status)
		}
		wants(t, "conflict", text, "r2 was changed since", "payments/writes", "r4", "more still", "What was changed since", "+ limit: {rps: 120}", "What the roll back would change", "+ limit: {rps: 100}")
		form.Set("seen", "4")
		if r, _ := pagetest.Post(t, s.Pages(), pagetest.Admin, "/changes/rollback", form); r.StatusCode != http.StatusConflict || s.limit() != "120" {
			t.Errorf("status %d, limit %s", r.StatusCode, s.limit())
		}
	})
}

// TestRollbackRights: a viewer may not even look; who may not edit the service is
// refused by the service behind; what is no change of limits has no way back.
func TestRollbackRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		s.apply("more", file("payments", "writes=110"))
		if _, err := s.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{Service: "payments", Caller: "promo", DurationMs: 600_000, Reason: "x", Gate: &grlv1.PlaceCapRequest_Block{Block: true}}); err != nil {
			t.Fatal(err)
		}
		form := url.Values{"entry": {"2"}, "seen": {"2"}, "reason": {"x"}, "force": {"yes"}}
		for _, who := range []access.Person{viewer, other} {
			if status, _, _ := s.get(who, "/changes/rollback?entry=2", false); status != http.StatusForbidden {
				t.Errorf("%s looks: %d", who.Name, status)
			}
			if r, _ := pagetest.Post(t, s.Pages(), who, "/changes/rollback", form); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s rolls back: %d", who.Name, r.StatusCode)
			}
		}
		if s.limit() != "110" {
			t.Errorf("limit %s, want 110", s.limit())
		}
		time.Sleep(2 * time.Minute)
		_, _, text := s.get(pagetest.Admin, "/changes?what=refused", false)
		wants(t, "what was refused", text, "refused", "ot may not change the limits of payments")
		for _, entry := range []string{"3", "0", "99", "x", ""} {
			if status, _, _ := s.get(pagetest.Admin, "/changes/rollback?entry="+entry, false); status != http.StatusNotFound {
				t.Errorf("entry %q: %d, want 404", entry, status)
			}
		}
	})
}

// TestChain: the page says what was found when the audit was last gone through.
func TestChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.apply("first", file("payments", "writes=100"))
		time.Sleep(61 * time.Minute)
		synctest.Wait()
		_, _, text := s.get(viewer, "/changes", false)
		wants(t, "the page", text, "audit chain whole up to entry 1, checked", fmt.Sprintf("Hash of the newest entry then: %x", s.audit()[0].GetHash()))
	})
	for _, tt := range []struct {
		name  string
		check page.AuditCheck
		want  string
	}{
		{"not yet", page.AuditCheck{}, "audit chain not gone through yet"},
		{"broken", page.AuditCheck{At: time.Now(), Broken: 12, Reason: "it is missing"}, "Audit broken entry 12: it is missing , checked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wants(t, tt.name, chainOf(t, tt.check), tt.want)
		})
	}
}
