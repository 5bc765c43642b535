package overview

import (
	"flag"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/policy/verdict"
	grlv1 "grl/proto/grl/v1"
	"grl/web/page"
	"grl/web/pagetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// someFleet is a fleet with all that the page may show without services. It is
// that of virtual time.
func someFleet() pagetest.Memory {
	now, nan := time.Now(), math.NaN()
	line := page.Series{}
	for i := range 288 {
		offered := 20_000 + 5000*math.Sin(float64(i)/40)
		dropped := max(0, offered-24_000)
		line.Offered, line.Admitted, line.Dropped = append(line.Offered, offered), append(line.Admitted, offered-dropped), append(line.Dropped, dropped)
		line.ShadowDropped, line.CandidateDropped = append(line.ShadowDropped, 100), append(line.CandidateDropped, 50)
	}
	return pagetest.Memory{
		Rows: pagetest.Cells(),
		Tree: page.Fleet{
			Epoch: 12, Revision: 1482, Loaded: now.Add(-time.Hour),
			Nodes: []page.Node{
				{Role: "aggregator", Name: "eu-1-a", Zone: "eu-1", Region: "eu", Revision: 1482, DirectiveAge: 900 * time.Millisecond, Hosts: 4812},
				{Role: "aggregator", Name: "eu-2-a", Zone: "eu-2", Region: "eu", Revision: 1481, DirectiveAge: 13 * time.Second, Hosts: 4655},
			},
			SilentZones: []string{"eu-2"}, SilentFor: map[string]time.Duration{"eu-2": 5 * time.Hour},
		},
		Count: page.Counts{Buckets: 12_480},
		Load:  page.Load{OfferedRPS: 25_000, AdmittedRPS: 24_000, DroppedRPS: 1000, ShadowDroppedRPS: 183, CandidateDroppedRPS: 67},
		Line:  map[string]page.Series{"": line},
		History: page.Past{
			At: now, Read: 1,
			Headroom: []page.Headroom{
				{Cell: limiter.CellID{Bucket: "payments/writes"}, Days: [7]float64{0.88, 0.91, 0.84, 0.9, 0.96, 1.03, 1.16}},
				{Cell: limiter.CellID{Bucket: "search/suggest", Instance: "eu"}, Days: [7]float64{nan, nan, nan, 0.94, 1.01, 0.99, 1}},
			},
			Evidence: []page.Evidence{{Verdict: verdict.Verdict{Kind: verdict.Safe}}, {Verdict: verdict.Verdict{Kind: verdict.Safe}}, {Verdict: verdict.Verdict{Kind: verdict.WouldHurt}}},
		},
	}
}

// All of the page but the frame, as it is printed in virtual time.
func TestOverviewIsAsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := pagetest.Handler(Routes(pagetest.Site(someFleet())))
		_, got := pagetest.Get(t, h, pagetest.Admin, "/", true)
		file := filepath.Join("testdata", "overview.html")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("the page is not %s; look at the difference, and run with -update if it is meant", file)
		}
	})
}

// fleetText returns the regions of a page, without markup.
func fleetText(t *testing.T, m pagetest.Memory, target string) string {
	t.Helper()
	_, body := pagetest.Get(t, pagetest.Handler(Routes(pagetest.Site(m))), pagetest.Admin, target, true)
	return plain(body)
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := someFleet()
		text := fleetText(t, m, "/")
		// By hand: the means of the last 60 of 288 points are not those of an hour's
		// series, which Memory answers with the same line.
		sum := 0.0
		for _, v := range m.Line[""].Offered {
			sum += v
		}
		for _, want := range []string{
			"Tree healthy except zone eu-2 1 controller 1 of 2 zones 4,812 hosts slowest directive 0.9 s r1482 1 node behind",
			fmt.Sprintf("Offered ≥ 25,000 rps without zone eu-2 mean 1 h %.1fk 24 h %.1fk", sum/288/1000, sum/288/1000),
			"Dropped ≥ 1,000 rps 4.0% of offered without zone eu-2",
			"Virtual drops ≥ 250 rps 1.0% of offered without zone eu-2 mean 1 h 150 24 h 150",
			"Buckets over limit 1 of 12,480 1 near",
			"payments/ writes global 10,624 of 9,000 15.3%",
			"2 shadow limits are safe to enforce.",
			"search/ suggest (eu) – not known – not known – not known 94 101 percent, over the limit 99 100",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
	})
}

// A bucket counts once, however many of its cells are over the limit; what is
// capped, in shadow or blocked counts as what it is.
func TestCountOver(t *testing.T) {
	over := page.Cell{Service: "a", Name: "b", Behavior: limiter.Deny, LimitRPS: 10, OfferedRPS: 20, Ratio: 0.5, Scope: limiter.Region}
	with := func(change func(*page.Cell)) page.Cell { c := over; change(&c); return c }
	tests := []struct {
		name       string
		cells      []page.Cell
		over, near int
	}{
		{"none", nil, 0, 0},
		{"two regions", []page.Cell{with(func(c *page.Cell) { c.Instance = "eu" }), with(func(c *page.Cell) { c.Instance = "us" })}, 1, 0},
		{"one over, one near", []page.Cell{over, with(func(c *page.Cell) { c.OfferedRPS, c.Ratio = 9.5, 0 })}, 1, 0},
		{"near", []page.Cell{with(func(c *page.Cell) { c.OfferedRPS, c.Ratio = 9.5, 0 })}, 0, 1},
		{"capped too", []page.Cell{with(func(c *page.Cell) { c.Capped = true })}, 1, 0},
		{"shadow", []page.Cell{with(func(c *page.Cell) { c.Behavior = limiter.Allow })}, 0, 0},
		{"blocked", []page.Cell{with(func(c *page.Cell) { c.Block = true })}, 0, 0},
		{"a cap", []page.Cell{with(func(c *page.Cell) { c.Cap = "7" })}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if over, near := countOver(tt.cells); over != tt.over || near != tt.near {
				t.Errorf("%d over, %d near, want %d and %d", over, near, tt.over, tt.near)
			}
		})
	}
}

func TestOverRowsAreTheWorst(t *testing.T) {
	var cells []page.Cell
	for i := range 20 {
		cells = append(cells, page.Cell{Service: "s", Name: fmt.Sprint(i * 7 % 20), Behavior: limiter.Deny, LimitRPS: 1, OfferedRPS: 2, Ratio: float64(i*7%20) / 20})
	}
	var names []string
	for _, r := range overRows(page.Fleet{}, cells) {
		names = append(names, r.Label.Name)
	}
	if got := strings.Join(names, " "); got != "19 18 17 16 15 14" {
		t.Errorf("over: %s", got)
	}
}

// A stream sends what changed, and no more.
func TestPartsAreSentWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := someFleet()
		s, v, sent := site{pagetest.Site(m)}, &view{Range: windows[1]}, make(map[string]string)
		send := func(all bool) []string {
			v.now(t.Context(), s, time.Now())
			if all {
				v.slow(t.Context(), s, time.Now())
			}
			var b strings.Builder
			if err := parts(t.Context(), v, all, sent).Render(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, p := range strings.Split(b.String(), `<hx-partial hx-target="#`)[1:] {
				id, _, _ := strings.Cut(p, `"`)
				ids = append(ids, id)
			}
			return ids
		}
		if got := strings.Join(send(true), " "); got != "top load headroom caps over decisions latest" {
			t.Errorf("first: %s", got)
		}
		if got := send(true); len(got) > 0 {
			t.Errorf("nothing changed, and %v is sent", got)
		}
		m.Load.OfferedRPS++
		s = site{pagetest.Site(m)}
		if got := strings.Join(send(false), " "); got != "top" {
			t.Errorf("offered moved: %s is sent, want top", got)
		}
		if got := strings.Join(send(true), " "); got != "load" {
			t.Errorf("later: %s is sent, want load", got)
		}
	})
}

func TestRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Add(7*time.Minute + 3*time.Second)
		for _, w := range windows {
			if w.steps > 300 {
				t.Errorf("%s has %d points", w.Name, w.steps)
			}
			q := w.query(now)
			if steps := q.To.Truncate(q.Step).Sub(q.From)/q.Step + 1; int(steps) != w.steps {
				t.Errorf("%s asks for %d steps, want %d", w.Name, steps, w.steps)
			}
			line := w.line(make([]float64, w.steps), 7)
			if len(line) != w.steps || line[w.steps-1] != 7 || line[0] != 0 {
				t.Errorf("%s: the last point is %v, want what is now", w.Name, line[w.steps-1])
			}
		}
		if rangeOf("7d").Name != "7 d" || rangeOf("<script>").Name != "24 h" {
			t.Error("ranges of URLs")
		}
		if text := fleetText(t, someFleet(), "/?range=7d"); !strings.Contains(text, "Last 7 days") {
			t.Errorf("7 days:\n%s", text)
		}
	})
}

func TestHeadroomPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := someFleet()
		for i := range 120 {
			m.History.Headroom = append(m.History.Headroom, page.Headroom{Cell: limiter.CellID{Bucket: fmt.Sprintf("s/b%03d", i)}, Days: [7]float64{6: 0.5}})
		}
		unknown := page.Headroom{Cell: limiter.CellID{Bucket: "s/unknown"}}
		for i := range unknown.Days {
			unknown.Days[i] = math.NaN()
		}
		m.History.Headroom = append(m.History.Headroom, unknown) // is not told
		m.History.LeftOut = 3
		text := fleetText(t, m, "/headroom?page=3")
		if !strings.Contains(text, "101–122 of 122") || strings.Count(text, " s/ b") != 22 || !strings.Contains(text, "3 cells beyond what is kept are not here") {
			t.Errorf("third page:\n%s", text)
		}
		m.History = page.Past{Read: 0.25}
		if text := fleetText(t, m, "/headroom"); !strings.Contains(text, "The history is being read: 25.0% so far.") {
			t.Errorf("not read yet:\n%s", text)
		}
		m.History = page.Past{At: time.Now(), Read: 1}
		if text := fleetText(t, m, "/"); !strings.Contains(text, "No enforced bucket has history yet under a limit.") {
			t.Errorf("nothing there:\n%s", text)
		}
	})
}

func TestWaitingRun(t *testing.T) {
	limit := func(rps float64) *grlv1.ComputedLimit { return &grlv1.ComputedLimit{Rps: rps} }
	pending, approved := grlv1.ProposalState_PROPOSAL_STATE_PENDING, grlv1.ProposalState_PROPOSAL_STATE_APPROVED
	run := &grlv1.GetRunResponse{Run: &grlv1.Run{Id: 311, FinishedAtMs: 1}, Results: []*grlv1.RunResult{
		{State: pending, Before: limit(10), After: limit(5)},
		{State: pending, Before: limit(10), After: limit(15)},
		{State: pending, After: limit(5)}, // is new
		{State: approved, Before: limit(10), After: limit(5)},
	}}
	d, ok := waitingRun(run, time.Now())
	if !ok || d.Lead != "3 limits wait for approval" || d.Text != "1 of them lower" || d.Link != (page.Crumb{Name: "RLC run 311", Path: "/rlc/run?id=311"}) {
		t.Errorf("waits: %+v", d)
	}
	run.Results = run.Results[3:]
	if _, ok := waitingRun(run, time.Now()); ok {
		t.Error("a run of which all is decided waits")
	}
}

func TestLatestSaysWhatChanged(t *testing.T) {
	const bucket = "# pay/writes\nname: writes\nlimit: {rps: %s}\nbehavior: %s\n"
	texts := func(a ...any) string { return fmt.Sprintf(bucket, a...) }
	tests := []struct {
		name  string
		entry *grlv1.AuditEntry
		want  string // empty: not told
	}{
		{"limit", &grlv1.AuditEntry{Action: "apply", Revision: 7, Subjects: []string{"pay/writes"}, Before: texts("8400", "deny"), After: texts("9000", "deny"), Actor: "rlc"}, "r7 pay/writes: limit 8,400 9,000"},
		{"behavior", &grlv1.AuditEntry{Action: "promote", Revision: 8, Subjects: []string{"pay/writes"}, Before: texts("5", "allow"), After: texts("5", "deny")}, "r8 pay/writes: behavior allow deny"},
		{"both", &grlv1.AuditEntry{Action: "apply", Revision: 9, Subjects: []string{"pay/writes"}, Before: texts("5", "allow"), After: texts("6", "deny"), Reason: "why not"}, "r9 pay/writes: why not  "},
		{"many", &grlv1.AuditEntry{Action: "apply", Revision: 9, Subjects: []string{"a/b", "a/c", "a/d", "a/e"}}, "r9 a/b, a/c and 2 more  "},
		{"cap", &grlv1.AuditEntry{Action: "cap.place", Subjects: []string{"cap 7"}, Reason: "storm"}, "Cap placed cap 7: storm  "},
		{"refused", &grlv1.AuditEntry{Action: "refused.apply", Revision: 3, Subjects: []string{"pay"}}, "Refused: applied pay  "},
		{"login", &grlv1.AuditEntry{Action: "login"}, ""},
		{"of later versions", &grlv1.AuditEntry{Action: "something.new"}, ""},
		{"hostile", &grlv1.AuditEntry{Action: "apply", Subjects: []string{"\u202e<b>" + strings.Repeat("x", 500)}}, "Applied \ufffd<b>" + strings.Repeat("x", latestSubject-6) + "…  "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, told := newLatest(tt.entry, time.Now())
			got := ""
			if told {
				got = l.Link.Name + " " + l.Text + " " + l.Old + " " + l.New
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestDecisionsOfARollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := someFleet()
		m.Tree.Rollout = &page.Rollout{Revision: 1483, From: 1482, Reached: []string{"a"}, Waiting: []string{"b", "c"}, StepAt: time.Now()}
		if text := fleetText(t, m, "/"); !strings.Contains(text, "r1483 is in 1 of 3 zones") || strings.Contains(text, "stopped") {
			t.Errorf("a rollout that goes on:\n%s", text)
		}
		m.Tree.Rollout.Stopped, m.Tree.Rollout.Reason = true, "drops 7% more"
		if text := fleetText(t, m, "/"); !strings.Contains(text, "The rollout of r1483 stopped: Drops 7% more. Finish or roll back") {
			t.Errorf("a rollout that stopped:\n%s", text)
		}
	})
}

// At a regional controller the parts that need the parent are left out.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pagetest.Site(someFleet())
		s.Services.Elsewhere = "https://global.example.com"
		_, body := pagetest.Get(t, pagetest.Handler(Routes(s)), pagetest.Admin, "/", true)
		text := plain(body)
		if !strings.Contains(text, "Changes are made at the parent Caps, alerts, RLC runs and the audit are at https://global.example.com.") {
			t.Errorf("it does not say where they are:\n%s", text)
		}
		for _, not := range []string{"Running caps", "Latest", "Place a cap"} {
			if strings.Contains(text, not) {
				t.Errorf("it has %q", not)
			}
		}
	})
}

func FuzzPages(f *testing.F) {
	f.Add("/", "range", "7d")
	f.Add("/headroom", "page", "-1")
	f.Fuzz(func(t *testing.T, path, key, value string) {
		if path != "/" && path != "/headroom" {
			return
		}
		h := pagetest.Handler(Routes(pagetest.Site(someFleet())))
		r, body := pagetest.Get(t, h, pagetest.Admin, path+"?"+url.Values{key: {value}}.Encode(), false)
		if r.StatusCode != 200 || strings.Contains(body, "<script>") {
			t.Errorf("status %d", r.StatusCode)
		}
	})
}
