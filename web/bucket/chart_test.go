package bucket

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/web/chart"
	"grl/web/page"
	"grl/web/pagetest"
)

var nan = math.NaN()

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}

func TestWithLive(t *testing.T) {
	tests := []struct {
		name string
		past []float64
		live float64
		step time.Duration
		want []float64
	}{
		{"the last point is live", []float64{1, 2}, 3, time.Minute, []float64{1, 2, 3}},
		{"a minute is not written yet", []float64{1, 2, nan}, 3, time.Minute, []float64{1, 2, 3, 3}},
		{"a gap is none of that", []float64{1, nan, nan, nan, nan}, 3, time.Minute, []float64{1, nan, nan, 3, 3, 3}},
		{"hours are not held", []float64{1, nan}, 3, time.Hour, []float64{1, nan, 3}},
		{"nothing is live", []float64{1, 2, nan}, nan, time.Minute, []float64{1, 2, nan, nan}},
		{"no history", nil, 3, time.Minute, []float64{3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := withLive(tt.past, tt.live, tt.step); !same(got, tt.want) {
				t.Errorf("withLive(%v, %v) = %v, want %v", tt.past, tt.live, got, tt.want)
			}
		})
	}
}

// TestAGapIsNamed: what is not known is a gap with words, and no line goes
// through it.
func TestAGapIsNamed(t *testing.T) {
	past := whole(page.Series{From: monday, Step: 5 * time.Minute}, page.SeriesQuery{From: monday, To: monday.Add(24 * time.Hour), Step: 5 * time.Minute})
	for i := range past.Offered {
		past.Offered[i], past.Admitted[i], past.Dropped[i] = 100, 100, 0
		past.ShadowDropped[i], past.CandidateDropped[i] = 0, 0
		if i >= 260 {
			past.Offered[i], past.Admitted[i], past.Dropped[i] = nan, nan, nan
		}
	}
	seen := cellsOf(page.Cell{OfferedRPS: 90, Silent: true})
	p := plotOf(query{Service: "payments", Name: "writes", Range: usual}, newCurves(past, seen), limits{}, seen)
	if len(p.Gaps) != 1 || p.Gaps[0].Text != "no data since 21:40" && p.Gaps[0].Text != "no data since Mon 21:40" {
		t.Fatalf("gaps %+v, want one since 21:40", p.Gaps)
	}
	if last := p.Strips[0].Lines[1].Values[288]; last == last {
		t.Errorf("the last point is %v, though its reports have stopped", last)
	}
}

func TestLimitsAdd(t *testing.T) {
	at := func(m int) time.Time { return monday.Add(time.Duration(m) * time.Minute) }
	l := limits{enforced: unknown(4), judged: unknown(4)}
	l.add([]page.LimitChange{
		{At: at(-100), LimitRPS: 10, Behavior: limiter.Deny},
		{At: at(1), LimitRPS: 10, CandidateRPS: 8, Behavior: limiter.Deny},
		{At: at(2), LimitRPS: 9, Behavior: limiter.Allow},
		{At: at(3), Block: true, Behavior: limiter.Deny},
	}, monday, time.Minute)
	if !same(l.enforced, []float64{10, 10, nan, 0}) || !same(l.judged, []float64{nan, 8, 9, nan}) {
		t.Errorf("enforced %v, judged %v", l.enforced, l.judged)
	}
	l.add([]page.LimitChange{{At: at(-1), LimitRPS: 5, Behavior: limiter.Deny}}, monday, time.Minute)
	if !same(l.enforced, []float64{15, 15, 5, 5}) {
		t.Errorf("with another instance %v", l.enforced)
	}
}

func TestChangeText(t *testing.T) {
	deny := page.LimitChange{LimitRPS: 8400, Behavior: limiter.Deny}
	tests := []struct {
		name    string
		was, is page.LimitChange
		want    string
	}{
		{"limit", deny, page.LimitChange{LimitRPS: 9000, Behavior: limiter.Deny}, "limit 8,400 → 9,000"},
		{"candidate", deny, page.LimitChange{LimitRPS: 8400, CandidateRPS: 7500, Behavior: limiter.Deny}, "candidate none → 7,500"},
		{"promoted", page.LimitChange{LimitRPS: 5}, page.LimitChange{LimitRPS: 5, Behavior: limiter.Deny}, "shadow → deny"},
		{"blocked", deny, page.LimitChange{Block: true, Behavior: limiter.Deny}, "blocked"},
		{"block ends", page.LimitChange{Block: true, Behavior: limiter.Deny}, deny, "block → 8,400"},
		{"the same", deny, deny, ""},
		{"new", page.LimitChange{}, deny, "created, limit 8,400"},
		{"new in shadow", page.LimitChange{}, page.LimitChange{LimitRPS: 5}, "created in shadow, limit 5.00"},
		{"new with a candidate", page.LimitChange{}, page.LimitChange{LimitRPS: 5, CandidateRPS: 4, Behavior: limiter.Deny}, "created, limit 5.00, candidate 4.00"},
		{"new as a block", page.LimitChange{}, page.LimitChange{Block: true, Behavior: limiter.Deny}, "created, blocked"},
		{"removed", deny, page.LimitChange{}, "removed"},
		{"another one", page.LimitChange{}, page.LimitChange{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := changeText(&tt.was, &tt.is); got != tt.want {
				t.Errorf("changeText = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestBeforeTheBucket: nothing is known of the time before there was a bucket, but
// what was counted; from then on nothing is nothing.
func TestBeforeTheBucket(t *testing.T) {
	at := func(minute int) time.Time { return monday.Add(time.Duration(minute) * time.Minute) }
	created := []page.LimitChange{{At: at(-9)}, {At: at(17), LimitRPS: 5, Revision: 7}}
	tests := []struct {
		name    string
		changes []page.LimitChange
		offered []float64 // each five minutes
		want    []float64
	}{
		{"created", created, []float64{0, 0, 0, 0, 0, 3}, []float64{nan, nan, nan, 0, 0, 3}},
		{"it always was", []page.LimitChange{{At: at(-9), LimitRPS: 5}}, []float64{0, 0, 2}, []float64{0, 0, 2}},
		{"counted before its first revision", created, []float64{0, 2, 0, 0, 0}, []float64{nan, 2, 0, 0, 0}},
		{"removed and made again", []page.LimitChange{{At: at(0), LimitRPS: 5}, {At: at(5)}, {At: at(20), Block: true}}, []float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0}},
		{"gone before", []page.LimitChange{{At: at(-9)}}, []float64{0, 0}, []float64{0, 0}},
		{"nothing is known of it", nil, []float64{0, nan}, []float64{0, nan}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := page.SeriesQuery{Bucket: "payments/writes", From: monday, To: at(5 * len(tt.offered)), Step: 5 * time.Minute}
			m := pagetest.Memory{
				Line:    map[string]page.Series{q.Bucket: {From: monday, Step: q.Step, Offered: tt.offered, HighestSecond: tt.offered}},
				Changes: map[string][]page.LimitChange{q.Bucket: tt.changes},
			}
			got, err := newLines().read(t.Context(), m, q)
			if err != nil || !same(got.Offered, tt.want) || !same(got.HighestSecond, tt.want) {
				t.Errorf("%v, highest %v, %v; want %v", got.Offered, got.HighestSecond, err, tt.want)
			}
		})
	}
}

// TestPeakOfWhatIsKnown: the peak of minutes is not said to be that of a day.
func TestPeakOfWhatIsKnown(t *testing.T) {
	for _, tt := range []struct {
		known int // of 288
		want  string
	}{{288, "24 h peak 34.0 in a second"}, {0, "no history of 24 h yet"}, {1, "5 min peak 34.0 in a second"}, {60, "5 h peak 34.0 in a second"}} {
		s := page.Series{Step: 5 * time.Minute, HighestSecond: unknown(288)}
		for i := range tt.known {
			s.HighestSecond[287-i] = 34
		}
		if got := peakNote(&s); len(got) != 1 || got[0].Text != tt.want {
			t.Errorf("%d points known: %v, want %q", tt.known, got, tt.want)
		}
	}
}

func TestMeet(t *testing.T) {
	tests := []struct {
		name string
		a, b limiter.Pattern
		want bool
	}{
		{"any", "", "checkout", true},
		{"the same", "checkout", "checkout", true},
		{"others", "checkout", "refunds", false},
		{"a prefix", "check*", "checkout", true},
		{"another prefix", "ref*", "checkout", false},
		{"two prefixes", "a*", "ab*", true},
		{"two others", "a*", "b*", false},
		{"everything", "*", "b*", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if meet(tt.a, tt.b) != tt.want || meet(tt.b, tt.a) != tt.want {
				t.Errorf("meet(%q, %q), want %v", tt.a, tt.b, tt.want)
			}
		})
	}
}

func TestRowsOf(t *testing.T) {
	var amounts []amount
	for i := range 10 {
		amounts = append(amounts, amount{name: string(rune('a' + i)), offered: float64(10 * (i + 1)), dropped: float64(i)})
	}
	rows := rowsOf(amounts, topRows, "caller", func(v float64) string { return limitText(v) })
	if len(rows) != topRows+1 || rows[0].Name != "j" || rows[6].Name != "4 other callers" || rows[6].Offered != "100" || rows[6].Dropped != "6.00" {
		t.Errorf("rows %+v, want the six largest, and the rest with 10+20+30+40 offered and 0+1+2+3 dropped", rows)
	}
	if rows[0].Bar != (chart.Bar{Admitted: 91, Dropped: 9, Of: 100}) {
		t.Errorf("bar %+v", rows[0].Bar)
	}
	if rows := rowsOf(amounts[:7], topRows, "caller", limitText); len(rows) != 7 {
		t.Errorf("%d rows of 7: one alone is not the rest", len(rows))
	}
}

func TestOverFor(t *testing.T) {
	limit := []float64{10, 10, 10, 10}
	tests := []struct {
		name    string
		offered []float64
		want    string
	}{
		{"not now", []float64{20, 20, 20, 5}, ""},
		{"for two", []float64{20, 5, 20, 20}, " for 2 min"},
		{"for all", []float64{20, 20, 20, 20}, " for over 1 h"},
		{"not known", []float64{20, 20, 20, nan}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := overFor(tt.offered, limit); got != tt.want {
				t.Errorf("overFor(%v) = %q, want %q", tt.offered, got, tt.want)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	q := query{Service: "payments", Name: "writes"}
	of := func(instance string, kind verdict.Kind) page.Evidence {
		return page.Evidence{
			Cell: limiter.CellID{Bucket: "payments/writes", Instance: instance}, LimitRPS: 100, HitCaller: "check<out>",
			Verdict: verdict.Verdict{Kind: kind, From: monday, Days: 8, Offered: 1000, Dropped: 20, Highest: 150, WorstDay: monday, WorstShare: 0.02},
		}
	}
	other := of("", verdict.WouldHurt)
	other.Cell.Bucket = "payments/reads"
	tests := []struct {
		name     string
		past     page.Past
		words    []string
		why      bool // it cannot be promoted yet
		more     string
		contains string
	}{
		{"not read yet", page.Past{Read: 0.5}, nil, true, "", "The history is being read: 50.0% so far."},
		{"nothing of it", page.Past{At: monday, Read: 1, Evidence: []page.Evidence{other}}, nil, true, "", "Nothing was counted yet"},
		{"safe", page.Past{At: monday, Read: 1, Evidence: []page.Evidence{other, of("", verdict.Safe)}}, []string{"Safe to enforce"}, false, "", "Would have dropped"},
		{"would hurt", page.Past{At: monday, Read: 1, Evidence: []page.Evidence{of("", verdict.WouldHurt)}}, []string{"Would hurt"}, false, "", "check<out>"},
		{"too little", page.Past{At: monday, Read: 1, Evidence: []page.Evidence{of("", verdict.TooLittle)}}, []string{"Too little data"}, true, "", ""},
		{
			"the worst cells first",
			page.Past{At: monday, Read: 1, Evidence: []page.Evidence{of("a", verdict.Safe), of("b", verdict.TooLittle), of("c", verdict.WouldHurt), of("d", verdict.Safe)}},
			[]string{"Would hurt", "Too little data", "Safe to enforce"},
			true, "1 more cell", "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v evidenceView
			v.verdicts(&tt.past, q)
			var words []string
			said := v.Unknown
			for _, e := range v.Verdicts {
				words = append(words, e.Word)
				said += verdict.Text(e.Sentences)
			}
			if !slices.Equal(words, tt.words) || (v.Why != "") != tt.why || v.More != tt.more || !strings.Contains(said, tt.contains) {
				t.Errorf("verdicts %q, %q, why not %q, more %q", words, said, v.Why, v.More)
			}
		})
	}
}
