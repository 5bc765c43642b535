package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// monday is the start of a week.
var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// quiet returns so many hours of 3600 requests each, of which nothing is lost.
func quiet(n int) []Hour {
	hours := make([]Hour, n)
	for i := range hours {
		hours[i] = Hour{Known: true, Offered: 3600, Highest: 2}
	}
	return hours
}

func TestKind(t *testing.T) {
	const week = 7 * 24
	lose := func(hours []Hour, hour int, lost float64) []Hour {
		hours[hour].Dropped = lost
		return hours
	}
	forget := func(hours []Hour, from, to int) []Hour {
		for i := from; i < to; i++ {
			hours[i] = Hour{}
		}
		return hours
	}
	tests := []struct {
		name  string
		from  time.Time
		hours []Hour
		want  Kind
	}{
		{"nothing", monday, nil, TooLittle},
		{"an hour less than a week", monday, quiet(week - 1), TooLittle},
		{"a week", monday, quiet(week), Safe},
		{"a week from a Sunday noon on has two halves of a Sunday", monday.Add(6*24*time.Hour + 12*time.Hour), quiet(week), Safe},
		{"two working weeks without the weekend between", monday, forget(quiet(12*24), 5*24, 7*24), TooLittle},
		{"a weekend with an unknown hour", monday, forget(quiet(10*24), 5*24, 5*24+1), TooLittle},
		{"so much lost on the second day, in a week less an hour", monday, lose(quiet(week-1), 30, 3600), TooLittle},
		{"exactly 0.1 % of a day", monday, lose(quiet(week), 30, 86.4), Safe},
		{"more than 0.1 % of a day", monday, lose(quiet(week), 30, 86.5), WouldHurt},
		{"0.1 % of two days each", monday, lose(lose(quiet(week), 30, 86.4), 60, 86.4), Safe},
		{"all of what an idle day had", monday, lose(func() []Hour {
			hours := quiet(week)
			for i := range 24 {
				hours[i].Offered = 0
			}
			hours[5].Offered = 1
			return hours
		}(), 5, 1), WouldHurt},
		{"a part of the first day", monday.Add(23 * time.Hour), lose(quiet(week+24), 0, 5), WouldHurt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := Judge(tt.from, tt.hours)
			if v.Kind != tt.want {
				t.Errorf("Judge = %v, want %v (%v days known, the worst lost %v)", v.Kind, tt.want, v.Days, v.WorstShare)
			}
			if ready := v.Ready; v.Kind == TooLittle && v.Days > 0 {
				known := append([]Hour(nil), tt.hours...)
				end := tt.from.Add(time.Duration(len(known)) * time.Hour)
				for ; end.Before(ready); end = end.Add(time.Hour) {
					if Judge(tt.from, known).Kind != TooLittle {
						t.Fatalf("ready at %v, want %v", end, ready)
					}
					known = append(known, Hour{Known: true})
				}
				if Judge(tt.from, known).Kind == TooLittle {
					t.Errorf("not ready at %v", ready)
				}
			}
		})
	}
}

// dumb judges without cleverness: a map for each day and for each hour of the week.
func dumb(from time.Time, hours []Hour) Verdict {
	type sum struct{ offered, lost float64 }
	var v Verdict
	days, week := map[string]*sum{}, map[string]*sum{}
	count := map[time.Weekday]int{}
	known := 0
	for i, h := range hours {
		at := from.Add(time.Duration(i) * time.Hour).UTC()
		if !h.Known {
			continue
		}
		known++
		count[at.Weekday()]++
		if v.From.IsZero() {
			v.From = at
		}
		day, hour := at.Format("2006-01-02"), at.Format("Mon 15")
		if days[day] == nil {
			days[day] = &sum{}
		}
		if week[hour] == nil {
			week[hour] = &sum{}
		}
		for _, s := range []*sum{days[day], week[hour]} {
			s.offered += h.Offered
			s.lost += h.Dropped
		}
		v.Offered += h.Offered
		v.Dropped += h.Dropped
		v.Highest = math.Max(v.Highest, h.Highest)
	}
	v.Days = float64(known) / 24
	for _, s := range days {
		if s.offered > 0 {
			v.WorstShare = math.Max(v.WorstShare, s.lost/s.offered)
		}
	}
	for d := range 7 {
		for h := range 24 {
			s := week[monday.Add(time.Duration(d*24+h)*time.Hour).Format("Mon 15")]
			switch {
			case s == nil:
				v.ByHour[d][h] = math.NaN()
			case s.offered > 0:
				v.ByHour[d][h] = s.lost / s.offered
			}
		}
	}
	switch {
	case known < 168 || count[time.Saturday] < 24 || count[time.Sunday] < 24:
		v.Kind = TooLittle
	case v.WorstShare > 0.001:
		v.Kind = WouldHurt
	default:
		v.Kind = Safe
	}
	return v
}

func TestJudgeEqualsDumb(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	kinds := map[Kind]int{}
	for range 400 {
		hours := make([]Hour, r.IntN(840))
		loss, gaps := math.Pow(10, -6*r.Float64()), r.Float64()*r.Float64()*0.2
		for i := range hours {
			if r.Float64() < gaps {
				continue
			}
			h := Hour{Known: true, Offered: float64(r.IntN(1000)), Highest: float64(r.IntN(50))}
			if r.IntN(20) == 0 {
				h.Dropped = math.Floor(h.Offered * loss)
			}
			hours[i] = h
		}
		from := monday.Add(time.Duration(r.IntN(1000)) * time.Hour)
		got, want := Judge(from, hours), dumb(from, hours)
		kinds[got.Kind]++
		if got.Kind != want.Kind || !got.From.Equal(want.From) || got.Days != want.Days || got.Offered != want.Offered ||
			got.Dropped != want.Dropped || got.Highest != want.Highest || !near(got.WorstShare, want.WorstShare) {
			t.Fatalf("Judge = %+v\nwant %+v", got, want)
		}
		for d := range got.ByHour {
			for h := range got.ByHour[d] {
				if !near(got.ByHour[d][h], want.ByHour[d][h]) {
					t.Fatalf("share of day %d, hour %d = %v, want %v", d, h, got.ByHour[d][h], want.ByHour[d][h])
				}
			}
		}
	}
	if len(kinds) != 3 {
		t.Errorf("kinds = %v: not all were tried", kinds)
	}
}

// near also holds of what is not known.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }

// TestWhen compares the days that are named with all sets of days.
func TestWhen(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var byHour [7][24]Hour
		total := 0.0
		for d := range byHour {
			if r.IntN(3) == 0 {
				continue
			}
			for h := range byHour[d] {
				byHour[d][h].Dropped = math.Floor(math.Pow(10, 4*r.Float64()*r.Float64())) - 1
				total += byHour[d][h].Dropped
			}
		}
		w := when(&byHour)
		if total == 0 {
			if len(w.Days) != 0 {
				t.Fatalf("when of nothing = %+v", w)
			}
			continue
		}
		held, ofDays := 0.0, 0.0
		for _, day := range w.Days {
			for h, hour := range byHour[Monday(day)] {
				ofDays += hour.Dropped
				if h >= w.From && h < w.To {
					held += hour.Dropped
				}
			}
		}
		if !near(w.Share, held/total) || ofDays < most*total || held < most*ofDays*(1-1e-12) {
			t.Fatalf("when = %+v of %v: its days hold %v, its hours %v", w, total, ofDays, held)
		}
		least, fewest := fewestDays(&byHour, total)
		for d := range byHour {
			sum := 0.0
			for _, hour := range byHour[d] {
				sum += hour.Dropped
			}
			if named := slices.Contains(w.Days, time.Weekday((d+1)%7)); named != (sum >= least/2) {
				t.Fatalf("day %d, with %v of %v, is named: %v; %d days hold most, the least of them %v", d, sum, total, named, fewest, least)
			}
		}
	}
}

// fewestDays tries all sets of days, and returns how many the smallest one has
// that holds most, and what the least of the days of the heaviest such set holds.
func fewestDays(byHour *[7][24]Hour, total float64) (least float64, fewest int) {
	fewest, heaviest := 8, 0.0
	for set := range 1 << 7 {
		n, sum, low := 0, 0.0, math.Inf(1)
		for d := range byHour {
			if set>>d&1 == 1 {
				day := 0.0
				for _, hour := range byHour[d] {
					day += hour.Dropped
				}
				n, sum, low = n+1, sum+day, math.Min(low, day)
			}
		}
		if sum >= most*total && (n < fewest || n == fewest && sum > heaviest) {
			fewest, heaviest, least = n, sum, low
		}
	}
	return least, fewest
}

func FuzzJudge(f *testing.F) {
	f.Add(int64(0), 200, 3600.0, 4.0, 2.0, byte(255))
	f.Add(int64(1e9), 840, 1e18, 1e15, 1e9, byte(0x7f))
	f.Fuzz(func(t *testing.T, from int64, n int, offered, lost, highest float64, known byte) {
		if n < 0 || n > 2000 || !(offered >= 0 && offered < 1e30 && lost >= 0 && lost <= offered && highest >= 0 && highest < 1e30) || from < -1e11 || from > 1e11 {
			return
		}
		hours := make([]Hour, n)
		for i := range hours {
			if known>>(i%8)&1 == 1 {
				hours[i] = Hour{Known: true, Offered: offered, Dropped: lost, Highest: highest}
			}
		}
		v := Judge(time.Unix(from, 0), hours)
		if !(v.WorstShare >= 0 && v.WorstShare <= 1) || !(v.When.Share >= 0 && v.When.Share <= 1) || v.When.From > v.When.To || v.When.To > 24 {
			t.Fatalf("Judge = %+v", v)
		}
		if v.Enough() < v.Highest {
			t.Fatalf("%v rps is said to be enough for %v in a second", v.Enough(), v.Highest)
		}
		for _, w := range []Words{{}, {LimitRPS: 0.001, Caller: "checkout"}, {LimitRPS: 1e9, Candidate: true}} {
			for _, text := range []string{Text(v.Sentences(w)), Text(v.Headline(w))} {
				if text == "" || len(text) > 1000 {
					t.Fatalf("sentence of %d bytes: %q", len(text), text)
				}
			}
		}
	})
}

func ExampleVerdict_Sentences() {
	evening := func(day int) int { return day*24 + 19 }
	hours := make([]Hour, 35*24)
	for i := range hours {
		hours[i] = Hour{Known: true, Offered: 36e6, Highest: 11_000}
		if day := i / 24 % 7; (day == 4 || day == 5) && i%24 >= 19 && i%24 < 23 {
			hours[i].Dropped, hours[i].Highest = 720e3, 14_210
		}
	}
	hours[evening(1)].Dropped = 1e6
	v := Judge(monday, hours)
	fmt.Println(Text(v.Headline(Words{Caller: "checkout"})))
	fmt.Println(Text(v.Sentences(Words{LimitRPS: 13_000, Caller: "checkout"})))

	v = Judge(monday, quiet(23*24))
	fmt.Println(Text(v.Sentences(Words{LimitRPS: 3})))
	few := quiet(8 * 24)
	few[3*24+5].Dropped, few[3*24+5].Highest = 20, 5
	v = Judge(monday, few)
	fmt.Println(Text(v.Sentences(Words{LimitRPS: 3, Candidate: true, EnforcedRPS: 6})))
	v = Judge(monday, quiet(3*24))
	fmt.Println(Text(v.Sentences(Words{LimitRPS: 3})))
	// Output:
	// Would hurt checkout on Friday and Saturday evenings
	// Would hurt checkout on Friday and Saturday evenings: 97% of its virtual drops fall then, between 18:00 and 24:00 UTC. The worst day, Fri 6 Mar, would have lost 0.33%. Raise to 15,000 rps to drop nothing.
	// Would have dropped nothing in 23 days. The highest second reached 67% of the limit.
	// Would have dropped 0.0029% in 8 days, and 0.023% of the worst day, Thu 5 Mar. The highest second reached 167% of the candidate. Raise to 5 rps to drop nothing.
	// Judged for 3 days; a verdict needs 7 days with a weekend. Ready on Mon 9 Mar, 00:00 UTC.
}

func TestWords(t *testing.T) {
	days := func(d ...time.Weekday) When { return When{Days: d, From: 18, To: 24, Share: 0.9} }
	tests := []struct {
		name string
		when When
		want string
	}{
		{"an evening", days(time.Friday), "Would hurt its callers on Friday evenings"},
		{"three", days(time.Monday, time.Friday, time.Sunday), "Would hurt its callers on Monday, Friday and Sunday evenings"},
		{"working days", days(time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday), "Would hurt its callers on weekday evenings"},
		{"a weekend", When{Days: []time.Weekday{time.Saturday, time.Sunday}, From: 3, To: 9}, "Would hurt its callers on weekends"},
		{"a day", When{Days: []time.Weekday{time.Monday}, From: 0, To: 20}, "Would hurt its callers on Mondays"},
		{"all evenings", days(0, 1, 2, 3, 4, 5, 6), "Would hurt its callers on most evenings"},
		{"at some hours of all days", When{Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6}, From: 9, To: 20}, "Would hurt its callers on most days"},
		{"always", When{Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6}, From: 0, To: 20}, "Would hurt its callers at any time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := Verdict{Kind: WouldHurt, When: tt.when}
			if got := Text(v.Headline(Words{})); got != tt.want {
				t.Errorf("Headline = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestJudgedFor: what was judged for minutes is not said to have been for hours.
func TestJudgedFor(t *testing.T) {
	for of, want := range map[time.Duration]string{
		0: "less than 1 min", 4 * time.Minute: "4 min", 119 * time.Minute: "119 min", 179 * time.Minute: "2 hours",
		46 * time.Hour: "46 hours", 71 * time.Hour: "2 days", 8 * 24 * time.Hour: "8 days",
	} {
		v := Verdict{Days: of.Hours() / 24}
		if got := Text(v.Sentences(Words{})); !strings.HasPrefix(got, "Judged for "+want+";") {
			t.Errorf("of %v: %q, want %q", of, got, want)
		}
	}
}

func TestEnough(t *testing.T) {
	for highest, want := range map[float64]float64{0: 0, 1: 1, 9: 9, 10: 10, 11: 11, 99: 99, 100: 100, 101: 110, 14_210: 15_000, 999_001: 1_000_000} {
		if got := (&Verdict{Highest: highest}).Enough(); got != want {
			t.Errorf("Enough of %v in a second = %v, want %v", highest, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0%", 1e-9: "under 0.0001%", 0.0000123: "0.0012%", 0.0019: "0.19%", 0.05: "5%", 0.0996: "10%", 0.811: "81%", 0.9999: "99%", 1: "100%", 1.24: "124%",
	} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
}
