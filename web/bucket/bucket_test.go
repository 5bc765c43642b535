package bucket_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/web/bucket"
	"grl/web/format"
	"grl/web/page"
	"grl/web/pagetest"
)

// stat returns a number of the page by its name, with its unit and what stands
// below it.
func stat(t testing.TB, body, name string) string {
	t.Helper()
	for _, part := range strings.Split(body, `<dt class="stat__name">`)[1:] {
		if text := plain(part[:strings.Index(part, "</div>")]); strings.HasPrefix(text, name+" ") {
			return strings.TrimPrefix(text, name+" ")
		}
	}
	t.Fatalf("the page has no number %q", name)
	return ""
}

// From the row of a caller leads a link to the form that caps just that one, for
// who may.
func TestCapOfACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		links := regexp.MustCompile(`href="/caps\?([^"]*)" aria-label="Cap ([^"]*)"`)
		for _, name := range []string{"payments/each", "payments/writes"} {
			var found [][]string
			for range 30 { // who sends is said with the figures of a while
				_, body, _ := s.get(editor, "/bucket?name="+name)
				if found = links.FindAllStringSubmatch(body, -1); len(found) > 0 {
					break
				}
				time.Sleep(time.Second)
			}
			if len(found) == 0 {
				t.Errorf("%s: no caller can be capped", name)
			}
			for _, link := range found {
				q, err := url.ParseQuery(strings.ReplaceAll(link[1], "&amp;", "&"))
				if err != nil || q.Get("service") != "payments" || q.Get("caller") != link[2] {
					t.Errorf("%s: the link for %s leads to %v, %v", name, link[2], q, err)
				}
			}
			if _, body, _ := s.get(viewer, "/bucket?name="+name); links.MatchString(body) {
				t.Errorf("%s: a viewer is led to the form", name)
			}
		}
	})
}

// TestNumbersOfNow recomputes the numbers of the head from the API.
func TestNumbersOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		for _, name := range []string{"payments/writes", "payments/reads", "payments/each"} {
			var offered, admitted, dropped, virtual, limit float64
			age := int64(-1)
			for _, r := range s.rows(name) {
				offered += r.GetOfferedRps()
				admitted += r.GetAdmittedRps()
				dropped += r.GetDroppedRps()
				virtual += r.GetShadowDroppedRps() + r.GetCandidateDroppedRps()
				limit = max(limit, r.GetLimitRps())
				age = max(age, r.GetDirectiveAgeMs())
			}
			status, body, _ := s.get(viewer, "/bucket?name="+name)
			if status != http.StatusOK {
				t.Fatalf("%s: status %d", name, status)
			}
			for stated, want := range map[string]float64{
				"Offered": offered, "Admitted": admitted, "Limit": limit, "Drop ratio": 100 * dropped / offered, "Virtual drops": virtual, "Directive age": float64(age) / 1000,
			} {
				// Chance moves them from one moment to the next.
				got := stat(t, body, stated)
				v, err := strconv.ParseFloat(strings.TrimRight(strings.ReplaceAll(strings.Fields(got)[0], ",", ""), "%"), 64)
				if err != nil || math.Abs(v-want) > 0.05*want+1 {
					t.Errorf("%s: %s is %q, want about %v", name, stated, got, want)
				}
			}
		}
		_, body, text := s.get(viewer, "/bucket?name=payments/writes")
		wants(t, text, "Enforced", "Over limit", "* → charges.v1.Charges/*", "scope global", "owner team-payments", "candidate 200")
		if !strings.Contains(body, "<title>payments/writes "+strings.Fields(stat(t, body, "Drop ratio"))[0]+" dropped · grl</title>") {
			t.Error("the title of the window does not say the state")
		}
		_, body, _ = s.get(viewer, "/bucket?name=payments/each&caller=checkout")
		if got := stat(t, body, "Offered"); !strings.HasPrefix(got, "39") && !strings.HasPrefix(got, "40") {
			t.Errorf("offered of checkout alone is %q, want about 400", got)
		}
	})
}

// rowOf returns the numbers of the row of a table.
func rowOf(t testing.TB, body, region, name string) []string {
	t.Helper()
	i := strings.Index(body, `id="`+region+`"`)
	for _, part := range strings.Split(body[i:], "<tr>")[1:] {
		part, _, _ = strings.Cut(part, "</tr>")
		if th, rest, ok := strings.Cut(part, "</th>"); ok && strings.Fields(plain(th) + " x")[0] == name {
			return strings.Fields(plain(rest))
		}
	}
	t.Fatalf("%s has no row %q", region, name)
	return nil
}

// TestCallers recomputes who sends.
// TestPolicyOfABucket: the page names the policy that computes the limit, which is
// the most specific one.
func TestPolicyOfABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		if _, _, text := s.get(viewer, "/bucket?name=payments/writes"); strings.Contains(text, "Computed by") {
			t.Error("a policy is named where there is none")
		}
		for name, match := range map[string]string{"all": "{service: payments}", "of-writes": "{bucket: writes}"} {
			_, err := s.Policy().ApplyPolicies(t.Context(), &grlv1.ApplyPoliciesRequest{Files: []*grlv1.LimitsFile{
				{Name: name + ".yaml", Data: []byte("name: " + name + "\nkind: peak\nmode: apply\nmatch: " + match + "\n")},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		_, body, text := s.get(viewer, "/bucket?name=payments/writes")
		wants(t, text, "Computed by policy of-writes peak, mode apply")
		wants(t, body, `href="/policies/show?name=of-writes"`)
		_, _, text = s.get(viewer, "/bucket?name=payments/reads")
		wants(t, text, "Computed by policy all peak, mode apply")
	})
}

func TestCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		time.Sleep(3 * time.Minute)
		_, body, _ := s.get(viewer, "/bucket?name=payments/each")
		for _, r := range s.rows("payments/each") {
			if r.GetCaller() == "" {
				continue
			}
			got, err := strconv.ParseFloat(strings.ReplaceAll(rowOf(t, body, "callers", r.GetCaller())[0], ",", ""), 64)
			if err != nil || math.Abs(got-r.GetOfferedRps()) > 0.05*r.GetOfferedRps() {
				t.Errorf("%s: offered %v, want about %v", r.GetCaller(), got, r.GetOfferedRps())
			}
		}

		s.pause()
		time.Sleep(time.Minute) // until all of it was counted
		traffic, err := s.view().GetTraffic(t.Context(), &grlv1.GetTrafficRequest{Service: "payments"})
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ = s.get(viewer, "/bucket?name=payments/writes")
		callers := 0
		for _, b := range traffic.GetHours()[0].GetBuckets() {
			if b.GetBucket() != "payments/writes" {
				continue
			}
			for _, c := range b.GetCallers() {
				callers++
				want := fmt.Sprint([]string{
					format.Size(float64(c.GetOffered())), format.Size(float64(c.GetOffered() - c.GetDropped())), format.Size(float64(c.GetDropped())),
				})
				if got := fmt.Sprint(rowOf(t, body, "callers", c.GetCaller())); got != want {
					t.Errorf("%s: %s, want %s", c.GetCaller(), got, want)
				}
			}
		}
		if callers != 2 {
			t.Errorf("%d callers compared, want checkout and price-bot", callers)
		}
	})
}

// change is the form of writes as it is, with a few values changed.
func change(base uint64, values ...string) url.Values {
	form := url.Values{
		"name": {"payments/writes"}, "base": {fmt.Sprint(base)}, "limit": {"300"}, "candidate": {"200"}, "behavior": {"deny"},
	}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return form
}

// bucketAt reads one bucket of the present configuration.
func (s *shop) bucketAt(name string) limiter.Bucket {
	s.t.Helper()
	got, err := s.config().GetConfiguration(s.t.Context(), &grlv1.GetConfigurationRequest{Service: "payments"})
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := limitsfile.Parse("payments", got.GetFiles()[0].GetData())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, b := range f.Service.Buckets {
		if b.Name == name {
			return b
		}
	}
	s.t.Fatalf("no bucket %s", name)
	return limiter.Bucket{}
}

// about reports a percentage after some words that is not about what is wanted:
// chance moves it from one moment to the next.
func about(t testing.TB, text, words string, want float64) {
	t.Helper()
	_, rest, _ := strings.Cut(text, words)
	got, err := strconv.ParseFloat(strings.TrimRight(strings.Fields(rest + " none")[0], "%"), 64)
	if err != nil || math.Abs(got-want) > 3 {
		t.Errorf("the page says %s%v%%, %v, want about %.1f%%", words, got, err, want)
	}
}

func TestEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		base := s.head()
		others := [3]limiter.Bucket{s.bucketAt("reads"), s.bucketAt("each"), s.bucketAt("regional")}

		status, _, text := s.get(editor, "/bucket/preview?"+change(base, "limit", "600").Encode())
		if status != http.StatusOK || s.head() != base {
			t.Fatalf("the preview answers %d, and the head is r%d", status, s.head())
		}
		wants(t, text, "Would drop nothing now", "- limit: {rps: 300}", "+ limit: {rps: 600}", fmt.Sprintf("Save as r%d", base+1))

		r, body, _ := s.post(editor, "/bucket/effect", change(base, "limit", "250"))
		offered := s.rows("payments/writes")[0].GetOfferedRps()
		if r.StatusCode != http.StatusOK {
			t.Errorf("the effect answers %d", r.StatusCode)
		}
		about(t, plain(body), "Would drop ", 100*(1-250/offered))

		r, _, _ = s.post(editor, "/bucket", change(base, "limit", "600", "candidate", "500", "reason", "more of it"))
		if r.StatusCode != http.StatusSeeOther {
			t.Fatalf("saving answers %d", r.StatusCode)
		}
		if b := s.bucketAt("writes"); b.LimitRPS != 600 || b.CandidateRPS != 500 || b.Behavior != limiter.Deny {
			t.Errorf("the bucket is %+v", b)
		}
		if now := [3]limiter.Bucket{s.bucketAt("reads"), s.bucketAt("each"), s.bucketAt("regional")}; fmt.Sprint(now) != fmt.Sprint(others) {
			t.Errorf("other buckets were changed: %+v", now)
		}
		time.Sleep(5 * time.Second)
		_, _, text = s.get(editor, r.Header.Get("Location"))
		wants(t, text, fmt.Sprintf("Saved as r%d and active 2 of 2 hosts confirmed it.", base+1), "Roll back", "Limits files do not have it", "grl export -o limits/",
			fmt.Sprintf("r%d limit 300 → 600 rps, candidate 200 → 500 rps by ed", base+1))
		if _, _, text = s.get(viewer, r.Header.Get("Location")); strings.Contains(text, "Roll back") {
			t.Error("a viewer is offered to roll back")
		}
		// A link that claims another revision proves nothing.
		if _, _, text = s.get(editor, fmt.Sprintf("/bucket?name=payments/reads&saved=%d", base+1)); strings.Contains(text, "Saved as") {
			t.Error("a revision that did not change the bucket is said to be its change")
		}

		r, _, _ = s.post(editor, "/bucket/rollback", url.Values{"name": {"payments/writes"}, "revision": {fmt.Sprint(base + 1)}})
		if b := s.bucketAt("writes"); r.StatusCode != http.StatusSeeOther || b.LimitRPS != 300 || b.CandidateRPS != 200 {
			t.Errorf("rolling back answers %d, and the bucket is %+v", r.StatusCode, b)
		}
		_, _, text = s.get(editor, r.Header.Get("Location"))
		wants(t, text, fmt.Sprintf("Saved as r%d and active", base+2))
		if r, _, _ = s.post(editor, "/bucket/rollback", url.Values{"name": {"payments/writes"}, "revision": {"x"}}); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("rolling back nothing answers %d", r.StatusCode)
		}
	})
}

func TestEditIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		base := s.head()
		tests := []struct {
			name   string
			form   url.Values
			status int
			want   []string
		}{
			{"no number", change(base, "limit", "lots", "reason", "typed <b>this</b>"), http.StatusUnprocessableEntity, []string{"Not saved: one field is wrong", "Write a number of requests per second, such as 1,200."}},
			{"two fields", change(base, "limit", "0", "candidate", "x"), http.StatusUnprocessableEntity, []string{"two fields are wrong", "A limit of 0 is a block: place a cap."}},
			{"nothing changed", change(base), http.StatusUnprocessableEntity, []string{"Nothing changed"}},
			{"a guard rail", change(base, "limit", "1000"), http.StatusUnprocessableEntity, []string{"Limit of 1,000 rps is above 3 times the present one, 300 rps", "An admin may pass it by force."}},
			{"force is not for editors", change(base, "limit", "1000", "force", "yes", "reason", "must"), http.StatusForbidden, []string{"force needs the role admin"}},
			{"no such bucket", url.Values{"name": {"payments/none"}, "base": {"1"}, "limit": {"5"}, "behavior": {"deny"}}, http.StatusNotFound, []string{"There is no bucket payments/none"}},
		}
		for _, tt := range tests {
			r, body, text := s.post(editor, "/bucket", tt.form)
			if r.StatusCode != tt.status {
				t.Errorf("%s: status %d, want %d", tt.name, r.StatusCode, tt.status)
			}
			wants(t, text, tt.want...)
			if v := tt.form.Get("reason"); strings.Contains(v, "<") && (strings.Contains(body, v) || !strings.Contains(body, "typed &lt;b&gt;this&lt;/b&gt;")) {
				t.Errorf("%s: what was typed is not shown again, escaped", tt.name)
			}
		}
		if s.head() != base {
			t.Errorf("something was saved as r%d", s.head())
		}
		for _, form := range []string{"/bucket", "/bucket/effect", "/bucket/promote", "/bucket/rollback", "/bucket/new", "/bucket/new/effect"} {
			if r, _, _ := s.post(viewer, form, change(base, "limit", "10")); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s answers %d to a viewer, want 403", form, r.StatusCode)
			}
		}
		if r, _, _ := s.post(stranger, "/bucket", change(base, "limit", "310")); r.StatusCode != http.StatusForbidden {
			t.Errorf("saving answers %d to an editor of others, want 403", r.StatusCode)
		}
	})
}

func TestForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		base := s.head()
		r, _, text := s.post(pagetest.Admin, "/bucket", change(base, "limit", "1000"))
		if r.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("status %d, want 422", r.StatusCode)
		}
		wants(t, text, "above 3 times the present one", "Yes, pass the guard rails for payments/writes", "Force 1,000 rps")
		// Force needs a reason.
		if r, _, _ = s.post(pagetest.Admin, "/bucket", change(base, "limit", "1000", "force", "yes")); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("force without a reason answers %d", r.StatusCode)
		}
		r, _, _ = s.post(pagetest.Admin, "/bucket", change(base, "limit", "1000", "force", "yes", "reason", "sale"))
		if r.StatusCode != http.StatusSeeOther || s.bucketAt("writes").LimitRPS != 1000 {
			t.Errorf("force answers %d, and the limit is %v", r.StatusCode, s.bucketAt("writes").LimitRPS)
		}
	})
}

func TestStaleEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		base := s.head()
		if r, _, _ := s.post(pagetest.Admin, "/bucket", change(base, "limit", "400")); r.StatusCode != http.StatusSeeOther {
			t.Fatalf("status %d", r.StatusCode)
		}
		// A change of another bucket is no conflict.
		r, _, _ := s.post(editor, "/bucket", url.Values{
			"name": {"payments/reads"}, "base": {fmt.Sprint(base)}, "limit": {"120"}, "behavior": {"allow"},
		})
		if r.StatusCode != http.StatusSeeOther || s.bucketAt("writes").LimitRPS != 400 || s.bucketAt("reads").LimitRPS != 120 {
			t.Fatalf("an edit of another bucket answers %d: %v, %v", r.StatusCode, s.bucketAt("writes").LimitRPS, s.bucketAt("reads").LimitRPS)
		}
		stale := change(base, "limit", "500", "reason", "mine")
		for _, send := range []func() (int, string, string){
			func() (int, string, string) {
				r, body, text := s.post(editor, "/bucket", stale)
				return r.StatusCode, body, text
			},
			func() (int, string, string) { return s.get(editor, "/bucket/preview?"+stale.Encode()) },
		} {
			status, body, text := send()
			if status != http.StatusConflict || s.bucketAt("writes").LimitRPS != 400 {
				t.Fatalf("a stale edit is answered %d, and the limit is %v", status, s.bucketAt("writes").LimitRPS)
			}
			offered := s.rows("payments/writes")[0].GetOfferedRps()
			wants(t, text, fmt.Sprintf("Not saved: r%d changed this bucket while you were editing Nothing was overwritten.", base+1),
				fmt.Sprintf("Theirs, r%d 00:00:20 UTC ada", base+1), "Limit 300 rps → 400 rps", "Limit 300 rps → 500 rps", "Keep theirs",
				fmt.Sprintf("Edit mine on top of r%d", base+1))
			about(t, text, "Would drop now ", 100*(1-400/offered))
			if !strings.Contains(body, `name="limit" value="500"`) || !strings.Contains(body, `name="reason" value="mine"`) {
				t.Error("what was typed is lost")
			}
		}
		status, body, text := s.get(editor, "/bucket/preview?"+change(base+1, "limit", "500", "reason", "mine").Encode())
		if status != http.StatusOK || !strings.Contains(body, fmt.Sprintf(`name="base" value="%d"`, base+1)) {
			t.Fatalf("the edit on top of theirs answers %d", status)
		}
		wants(t, text, "- limit: {rps: 400}", "+ limit: {rps: 500}")
		if r, _, _ = s.post(editor, "/bucket", change(base+1, "limit", "500")); r.StatusCode != http.StatusSeeOther || s.bucketAt("writes").LimitRPS != 500 {
			t.Errorf("saving it answers %d, and the limit is %v", r.StatusCode, s.bucketAt("writes").LimitRPS)
		}
	})
}

func TestEditOfRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		_, body, text := s.get(editor, "/bucket?name=payments/regional")
		wants(t, text, "scope region", "Limit in eu")
		if !strings.Contains(body, `name="region-0" type="text" value="80"`) {
			t.Error("the field of the region does not have its limit")
		}
		form := url.Values{
			"name": {"payments/regional"}, "base": {fmt.Sprint(s.head())}, "limit": {"60"}, "behavior": {"deny"},
			"region-name-0": {"eu"}, "region-0": {""}, "region-name-1": {"us"}, "region-1": {"40"},
		}
		r, _, _ := s.post(editor, "/bucket", form)
		if b := s.bucketAt("regional"); r.StatusCode != http.StatusSeeOther || b.LimitRPS != 60 || fmt.Sprint(b.Regions) != "map[us:40]" {
			t.Errorf("status %d, bucket %+v", r.StatusCode, b)
		}
	})
}

func TestWhoMayLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		tests := []struct {
			name      string
			who       access.Person
			says, not []string
		}{
			{"a viewer", viewer, []string{"You can look, not change", "Your role is viewer. Editors of payments: team-payments.", "300 rps"}, []string{"<textarea", `action="/bucket"`, "Place a cap", `action="/bucket/promote"`}},
			{"an editor of others", stranger, []string{"You can look, not change", "Editors of payments: team-payments."}, []string{`action="/bucket"`, "Place a cap", "Your role is viewer"}},
			{"an editor", editor, []string{"Change this bucket", "Place a cap", `action="/bucket/promote"`}, []string{"You can look"}},
		}
		for _, tt := range tests {
			_, body, _ := s.get(tt.who, "/bucket?name=payments/writes")
			for _, part := range tt.says {
				if !strings.Contains(body, part) {
					t.Errorf("%s: the page has no %q", tt.name, part)
				}
			}
			for _, part := range tt.not {
				if strings.Contains(body, part) {
					t.Errorf("%s: the page has %q", tt.name, part)
				}
			}
		}
	})
}

func TestPromote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strings.Replace(payments, "limit: {rps: 100}\n    behavior: allow", "limit: {rps: 1000}\n    behavior: allow", 1))
		base := s.head()
		form := url.Values{"name": {"payments/reads"}, "base": {fmt.Sprint(base)}, "reason": {"it is time"}}
		r, _, _ := s.post(editor, "/bucket/promote", form)
		if r.StatusCode != http.StatusSeeOther || s.bucketAt("reads").Behavior != limiter.Deny {
			t.Fatalf("status %d, bucket %+v", r.StatusCode, s.bucketAt("reads"))
		}
		_, _, text := s.get(editor, r.Header.Get("Location"))
		wants(t, text, fmt.Sprintf("Saved as r%d and active", base+1), "shadow → deny by ed")
		// It was looked at as it is no more.
		r, _, text = s.post(editor, "/bucket/promote", form)
		if r.StatusCode != http.StatusConflict {
			t.Errorf("promoting what was changed answers %d, want 409", r.StatusCode)
		}
		wants(t, text, "changed this bucket while you were looking")
	})
}

func TestNewBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		base := s.head()
		status, body, text := s.get(editor, "/bucket/new?service=payments&caller=price-bot&rps=240")
		if status != http.StatusOK || !strings.Contains(body, `name="limit" type="text" value="240"`) || !strings.Contains(body, `name="bucket" type="text" value="price-bot"`) {
			t.Fatalf("status %d: the form does not have what the link says", status)
		}
		wants(t, text, "Would drop 0 % of the", "+ match: {caller: price-bot}") // what is offered now
		form := url.Values{
			"service": {"payments"}, "bucket": {"price-bot"}, "caller": {"price-bot"}, "limit": {"240"}, "behavior": {"deny"}, "scope": {"global"},
		}
		for _, tt := range []struct{ field, value, want string }{
			{"bucket", "writes", "The service has a bucket of this name already."},
			{"bucket", "", "A bucket needs a name."},
			{"limit", "", "A bucket needs a limit."},
			{"scope", "moon", "Choose global, region or zone."},
		} {
			bad := url.Values{}
			for k, v := range form {
				bad[k] = v
			}
			bad.Set(tt.field, tt.value)
			r, _, text := s.post(editor, "/bucket/new", bad)
			if r.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%s %q answers %d, want 422", tt.field, tt.value, r.StatusCode)
			}
			wants(t, text, tt.want)
		}
		r, _, _ := s.post(editor, "/bucket/new", form)
		if b := s.bucketAt("price-bot"); r.StatusCode != http.StatusSeeOther || b.LimitRPS != 240 || b.Match.Caller != "price-bot" {
			t.Fatalf("status %d, bucket %+v", r.StatusCode, b)
		}
		_, _, text = s.get(editor, r.Header.Get("Location"))
		wants(t, text, fmt.Sprintf("Saved as r%d and active", base+1), "payments/ price-bot", "created, 240 rps by ed")

		form.Set("service", "search")
		if r, _, _ = s.post(editor, "/bucket/new", form); r.StatusCode != http.StatusForbidden {
			t.Errorf("a bucket of a service that one may not change answers %d", r.StatusCode)
		}
		form.Set("owner", "team-search")
		if r, _, _ = s.post(pagetest.Admin, "/bucket/new", form); r.StatusCode != http.StatusSeeOther {
			t.Errorf("a bucket of a new service answers %d", r.StatusCode)
		}
		got, err := s.config().GetConfiguration(t.Context(), &grlv1.GetConfigurationRequest{Service: "search"})
		if err != nil || !strings.Contains(string(got.GetFiles()[0].GetData()), "owner: team-search") {
			t.Errorf("the new service is %s, %v", got, err)
		}
	})
}

// TestRegions: each region of the page answers htmx with what it contains.
func TestRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		_, whole, _ := s.get(editor, "/bucket?name=payments/writes")
		for _, m := range regexp.MustCompile(`hx-get="(/bucket/[^"]+)"`).FindAllStringSubmatch(whole, -1) {
			target := strings.ReplaceAll(m[1], "&amp;", "&")
			r, body := pagetest.Get(t, s.Pages(), editor, target, true)
			if r.StatusCode != http.StatusOK || strings.Contains(body, "<html") || strings.Contains(body, "<form") || len(body) == 0 {
				t.Errorf("%s answers %d, %d bytes: want content without a form", target, r.StatusCode, len(body))
			}
			if r, body := pagetest.Get(t, s.Pages(), editor, target, false); r.StatusCode != http.StatusOK || !strings.Contains(body, "<html") {
				t.Errorf("%s answers %d without htmx, want the page", target, r.StatusCode)
			}
		}
		if len(whole) > 300_000 {
			t.Errorf("the page has %d bytes, want at most 300,000", len(whole))
		}
	})
}

// hostile are names that want to be something else.
var hostile = []string{
	`"><script>alert(1)</script>`, `'); drop table`, `a/b/c`, "\u202eegap eht nrut", `{{.}}`, `../../etc/passwd`, "\x00\xff", strings.Repeat("x", 5000), "&amp;", "/", "",
}

func TestHostileNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		for _, name := range hostile {
			for _, target := range []string{"/bucket", "/bucket/now", "/bucket/zoom", "/bucket/series.json", "/bucket/series.csv", "/bucket/new"} {
				v := url.Values{"name": {"payments/" + name}, "service": {name}, "bucket": {name}, "caller": {name}, "instance": {name}, "range": {name}, "saved": {name}}
				status, body, _ := s.get(pagetest.Admin, target+"?"+v.Encode())
				if status >= 500 {
					t.Errorf("%s of %q answers %d", target, name, status)
				}
				if strings.Contains(body, "<script>alert") || strings.ContainsAny(body, "\x00\u202e") {
					t.Errorf("%s prints %q as it is", target, name)
				}
			}
			form := url.Values{
				"name": {"payments/" + name}, "service": {"payments"}, "bucket": {name}, "caller": {name}, "procedure": {name}, "owner": {name},
				"limit": {name}, "candidate": {name}, "behavior": {"deny"}, "scope": {"global"}, "reason": {name}, "base": {name}, "revision": {name},
			}
			for _, target := range []string{"/bucket", "/bucket/effect", "/bucket/promote", "/bucket/rollback", "/bucket/new", "/bucket/new/effect"} {
				r, body, _ := s.post(pagetest.Admin, target, form)
				if r.StatusCode >= 500 || strings.Contains(body, "<script>alert") || strings.ContainsAny(body, "\x00\u202e") {
					t.Errorf("%s of %q answers %d", target, name, r.StatusCode)
				}
			}
		}
	})
}

// TestHostileCells: whatever cells and zones are called, nothing of it is markup.
func TestHostileCells(t *testing.T) {
	for _, name := range hostile {
		if name == "" {
			continue
		}
		m := pagetest.Memory{
			Rows: []page.Cell{
				{Service: "payments", Name: "b", Owner: name, Match: name, Instance: name, Caller: name, LimitRPS: 5, OfferedRPS: 10, Behavior: limiter.Deny, Ratio: 0.5},
			},
			ByZone: map[string][]page.Part{"payments/b": {{Zone: name, Region: name, OfferedRPS: 5, Silent: true}}},
		}
		h := pagetest.Handler(bucket.Routes(pagetest.Site(m)))
		for _, region := range []string{"now", "chart", "zones"} {
			r, body := pagetest.Get(t, h, pagetest.Admin, "/bucket/"+region+"?name=payments/b&by=region", true)
			if r.StatusCode != http.StatusOK || strings.Contains(body, "<script>alert") || strings.ContainsAny(body, "\x00\u202e") {
				t.Errorf("%s of %q answers %d: %.300s", region, name, r.StatusCode, body)
			}
		}
	}
}

// TestErrorsOfTheAPIAreShown: what the page does not check itself, the API does.
func TestErrorsOfTheAPIAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		r, _, text := s.post(editor, "/bucket", change(s.head(), "limit", "310", "reason", strings.Repeat("long ", 1000)))
		if r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a reason that is too long answers %d", r.StatusCode)
		}
		wants(t, text, "reason")
	})
}

// BenchmarkNow is the head of a page where there are 100,000 cells.
func BenchmarkNow(b *testing.B) {
	m := pagetest.Memory{}
	for i := range 100_000 {
		m.Rows = append(m.Rows, page.Cell{Service: fmt.Sprintf("service-%03d", i%200), Name: fmt.Sprintf("bucket-%d", i), LimitRPS: 100, OfferedRPS: 10})
	}
	h := pagetest.Handler(bucket.Routes(pagetest.Site(m)))
	for b.Loop() {
		if r, _ := pagetest.Get(b, h, pagetest.Admin, "/bucket/now?name=service-007/bucket-99007", true); r.StatusCode != http.StatusOK {
			b.Fatal(r.Status)
		}
	}
}

// TestZoom: with the script there is a place for its chart; without it the drawing
// and the table stand alone.
func TestZoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		m := pagetest.Memory{Rows: []page.Cell{{Service: "payments", Name: "writes", LimitRPS: 300}}}
		for _, built := range []bool{true, false} {
			site := pagetest.Site(m)
			if built {
				site.Assets.Plot, site.Assets.PlotStyle, site.Assets.Zoom = "/assets/plot.js", "/assets/plot.css", "/assets/zoom.js"
			}
			r, body := pagetest.Get(t, pagetest.Handler(bucket.Routes(site)), viewer, "/bucket/zoom?name=payments/writes", false)
			if r.StatusCode != http.StatusOK || !strings.Contains(body, `class="chart__plot"`) || !strings.Contains(body, "The same as a table") {
				t.Errorf("built %v: status %d, without the drawing or the table", built, r.StatusCode)
			}
			for _, part := range []string{`data-series="/bucket/series.json?name=payments%2Fwrites"`, "/assets/plot.js", "/assets/zoom.js", "/assets/plot.css"} {
				if strings.Contains(body, part) != built {
					t.Errorf("built %v: the page has %q: %v", built, part, !built)
				}
			}
		}
		if status, _, _ := s.get(viewer, "/bucket/zoom?name=payments/writes&range=7d"); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	})
}
