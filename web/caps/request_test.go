package caps

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
)

func TestGate(t *testing.T) {
	tests := []struct {
		name           string
		to, typed, was string
		want           gate
	}{
		{"a size", "half 480", "", "", gate{RPS: 480, Size: "half"}},
		{"a size, with the number that the page put there", "half 480", "240", "240", gate{RPS: 480, Size: "half"}},
		{"a number typed since goes before a size", "half 480", "300", "240", gate{RPS: 300}},
		{"a number deleted leaves the size", "half 480", "", "240", gate{RPS: 480, Size: "half"}},
		{"a number without a size, as it arrived", "", "3", "3", gate{RPS: 3}},
		{"a block", "block", "", "", gate{Block: true, Size: block}},
		{"a block, after a number that stands there", "block", "240", "240", gate{Block: true, Size: block}},
		{"thousands", "", "1,200.5", "", gate{RPS: 1200.5}},
		{"nothing", "", "", "", gate{Problem: "Choose a size, or type a number."}},
		{"0", "", "0", "", gate{Problem: "A cap of 0 rps is Block; choose it."}},
		{"0.0", "", "0.0", "", gate{Problem: "A cap of 0 rps is Block; choose it."}},
		{"below 0", "", "-5", "", gate{Problem: "A cap is from 0.001 to 1,000,000,000 rps."}},
		{"without end", "", "Inf", "", gate{Problem: "A cap is from 0.001 to 1,000,000,000 rps."}},
		{"not a number", "", "NaN", "", gate{Problem: `"NaN" is not a number of requests a second.`}},
		{"a comma that could mean either", "", "1,5", "", gate{Problem: `"1,5" is not a number of requests a second.`}},
		{"a size whose number was tampered with", "half x", "", "", gate{Size: "half", Problem: `"x" is not a number of requests a second.`}},
		{"something long", "", strings.Repeat("9x", 60), "", gate{Problem: `"` + strings.Repeat("9x", 20) + `…" is not a number of requests a second.`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := request{To: tt.to, Typed: tt.typed, Was: tt.was}
			if got := q.gate(); got != tt.want {
				t.Errorf("gate = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestSpanUntil(t *testing.T) {
	now := time.Date(2026, 3, 13, 21, 40, 0, 0, time.UTC)
	tests := []struct {
		text string
		want time.Duration // 0: a problem
	}{
		{"15m", 15 * time.Minute},
		{"24h", 24 * time.Hour},
		{"2 h 30 min", 150 * time.Minute},
		{"22:40", time.Hour},
		{"22:40 UTC", time.Hour},
		{"21:40", 24 * time.Hour}, // tomorrow
		{"0:10", 150 * time.Minute},
		{"25h", 0},
		{"24h1s", 0},
		{"0s", 0},
		{"-1h", 0},
		{"25:00", 0},
		{"soon", 0},
		{"", 0},
	}
	for _, tt := range tests {
		got, problem := spanUntil(tt.text, now)
		if got != tt.want || (problem == "") != (tt.want != 0) {
			t.Errorf("spanUntil(%q) = %v, %q, want %v", tt.text, got, problem, tt.want)
		}
	}
	if _, problem := spanUntil("25h", now); problem != "At most 24 h." {
		t.Errorf("25 h: %q", problem)
	}
}

// Whatever is sent as a form, what it says is a number in bounds or a sentence.
func FuzzPosted(f *testing.F) {
	f.Add("half 480", "300", "240", "1h", "22:40")
	f.Fuzz(func(t *testing.T, to, typed, was, span, until string) {
		q := posted(url.Values{"to": {to}, "rps": {typed}, "was": {was}, "for": {span}, "until": {until}})
		if g := q.gate(); g.Problem == "" && !g.Block && !(g.RPS >= minRPS && g.RPS <= maxRPS) || math.IsNaN(g.RPS) {
			t.Errorf("gate = %+v", g)
		}
		if d, problem := q.span(time.Unix(1e9, 0)); problem == "" && (d < time.Second || d > longestSpan) {
			t.Errorf("span = %v", d)
		}
	})
}

func TestCovers(t *testing.T) {
	tests := []struct {
		wide, narrow limiter.Pattern
		want         bool
	}{
		{"", "web", true},
		{"*", "web", true},
		{"", "", true},
		{"*", "", true},
		{"", "*", true},
		{"web", "web", true},
		{"web*", "web", true},
		{"web*", "web-eu", true},
		{"web*", "web-*", true},
		{"web*", "web*", true},
		{"web", "", false},
		{"web", "web*", false},
		{"web*", "*", false},
		{"web*", "", false},
		{"web-*", "web*", false},
		{"web", "Web", false},
	}
	for _, tt := range tests {
		if got := covers(tt.wide, tt.narrow); got != tt.want {
			t.Errorf("covers(%q, %q) = %v, want %v", tt.wide, tt.narrow, got, tt.want)
		}
	}
}

func TestTwoDigits(t *testing.T) {
	for rps, want := range map[float64]float64{478: 480, 239: 240, 7.46: 7.5, 99.6: 100, 0.00001: minRPS, 123456: 120000, 5: 5} {
		if got := twoDigits(rps); got != want {
			t.Errorf("twoDigits(%v) = %v, want %v", rps, got, want)
		}
	}
}

// However many caps run, a page stays small, and there is one for each.
func TestManyCaps(t *testing.T) {
	var caps []*grlv1.CapView
	for i := range 1000 {
		name := strings.Repeat("n", 256)
		caps = append(caps, &grlv1.CapView{EndsAtMs: 1e13, OfferedRps: 5, DroppedRps: 1, Cap: &grlv1.Cap{
			Id: strconv.Itoa(i), Service: name, Match: &grlv1.Match{Caller: name, Procedure: name}, Author: name, Reason: name + "nnnn",
			Gate: &grlv1.Cap_Limit{Limit: &grlv1.Limit{Rps: 1}},
		}})
	}
	ctx := access.With(t.Context(), access.Identity{Person: &access.Person{Level: access.Admin}})
	for _, tt := range []struct {
		number      int
		first, last string // ids
		says        []string
	}{
		{1, "0", "49", []string{"1–50 of 1,000", `href="/caps?page=2#running"`}},
		{2, "50", "99", []string{"51–100 of 1,000", `href="/caps#running"`, `href="/caps?page=3#running"`}},
		{20, "950", "999", []string{"951–1,000 of 1,000", `href="/caps?page=19#running"`}},
		{21, "950", "999", nil}, // there were more before
	} {
		v := newRunning(ctx, caps, nil, tt.number, time.Now())
		var b strings.Builder
		if err := runningContent(v).Render(ctx, &b); err != nil {
			t.Fatal(err)
		}
		if v.Note != "1,000 caps" || len(v.Rows) != mostRunning || v.Rows[0].ID != tt.first || v.Rows[mostRunning-1].ID != tt.last || !v.Rows[0].May || b.Len() > 250_000 {
			t.Errorf("page %d: %s, %d rows, %d bytes", tt.number, v.Note, len(v.Rows), b.Len())
		}
		for _, want := range tt.says {
			if !strings.Contains(b.String(), want) {
				t.Errorf("page %d does not say %q", tt.number, want)
			}
		}
	}
	if v := newRunning(ctx, caps[:mostRunning], nil, 1, time.Now()); v.Pager != nil || v.Stream != "/caps/events" {
		t.Errorf("a page that is whole has a pager %+v, or another stream %s", v.Pager, v.Stream)
	}
}

// Sizes that are not known are not offered; each says what it stands for.
func TestSizes(t *testing.T) {
	v := view{Forecast: forecast{Sizes: sizes{Half: 480, Quarter: 240, Usual: 270}, Gate: gate{RPS: 240, Size: "quarter"}}, Request: request{To: "quarter 240"}}
	var got []string
	for _, c := range v.choices() {
		got = append(got, c.Value+"="+c.Name+" "+c.Note)
	}
	want := "half 480=Half 480, quarter 240=Quarter 240, usual 270=Usual 270, block=Block 0"
	if all := strings.Join(got, ", "); all != want || v.chosen() != "quarter 240" || v.number() != "240" {
		t.Errorf("sizes = %s, chosen %q, number %q, want %s", all, v.chosen(), v.number(), want)
	}
	v.Forecast.Sizes = sizes{}
	if len(v.choices()) != 1 {
		t.Errorf("sizes = %v, want a block alone", v.choices())
	}
	f := forecast{OfferedRPS: 956, Sizes: sizes{Usual: 270}}
	acts := []act{{Action: "cap.lift", Cap: logged{Reason: "no"}}, {Action: "cap.place", Cap: logged{Reason: "retry storm"}}, {Action: "cap.place", Cap: logged{Reason: "retry storm"}}, {Action: "cap.place"}}
	if got := strings.Join(f.ready(acts), "|"); got != "956 rps offered, usual at this hour 270|retry storm" {
		t.Errorf("ready reasons: %s", got)
	}
}
