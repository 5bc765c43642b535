package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/policy"
)

// night is when the cycle of these tests runs, a Monday.
var night = time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)

const fiveMinutes = 5 * time.Minute

// fourWeeks are the rows of the four weeks before night: a day's and a week's
// shape, noise of a fixed seed, and a busy hour on the second Friday, which is
// what a limit comes from.
func fourWeeks() []row {
	rng := rand.New(rand.NewPCG(7, 7))
	var rows []row
	for at := night.Add(-4 * week); at.Before(night); at = at.Add(fiveMinutes) {
		shape := 0.55 - 0.45*math.Cos(float64(at.Hour()*60+at.Minute())/1440*2*math.Pi)
		if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
			shape *= 0.6
		}
		rps := 100 * shape * (1 + 0.03*rng.NormFloat64())
		if friday := night.Add(-17*day + 12*time.Hour); !at.Before(friday) && at.Before(friday.Add(time.Hour)) {
			rps *= 1.5
		}
		rows = append(rows, row{at, rps})
	}
	return rows
}

// laid lays rows out as a source does, and judges them.
func laid(rows []row, change func(*lane, *claim)) Unit {
	l := newLane(night.Add(-4*week), fiveMinutes, int(4*week/fiveMinutes))
	l.put(rows)
	c := claim{from: night.Add(-4 * week), to: night, least: 3 * week}
	if change != nil {
		change(l, &c)
	}
	return l.unit(c)
}

// limit returns what peak makes of a unit, and the limit after the rails; the
// present one if the unit is refused.
func limit(u Unit, present float64) float64 {
	spec := &policy.Spec{Name: "p", Kind: "peak", History: 4 * week, Digits: 2, MaxStep: 0.2}
	if u.Refused != "" {
		return present
	}
	peak := policy.Kinds()[slices.IndexFunc(policy.Kinds(), func(k policy.Kind) bool { return k.Name == "peak" })]
	result := peak.New(spec).Compute(policy.Input{Now: night, Series: u.Series, SecondOverMinute: 1})
	if result.Refused != "" {
		return present
	}
	return policy.Bound(spec, policy.BoundInput{At: night, LimitRPS: result.LimitRPS, PresentRPS: present, NoLower: u.NoLower}).LimitRPS
}

// isWord reports whether a refusal is one of the words that there are.
func isWord(word string) bool {
	return word == "" || slices.ContainsFunc(policy.Refusals(), func(w policy.Word) bool { return w.Name == word })
}

// change changes each row that a test selects.
func change(when func(i int, r row) bool, to func(row) []row) func([]row) []row {
	return func(rows []row) []row {
		var out []row
		for i, r := range rows {
			if when(i, r) {
				out = append(out, to(r)...)
			} else {
				out = append(out, r)
			}
		}
		return out
	}
}

func value(rps float64) func(row) []row { return func(r row) []row { return []row{{r.at, rps}} } }

func gone(row) []row { return nil }

func between(from, to time.Duration) func(int, row) bool {
	return func(_ int, r row) bool {
		return !r.at.Before(night.Add(-from)) && r.at.Before(night.Add(-to))
	}
}

func every(n int) func(int, row) bool { return func(i int, _ row) bool { return i%n == 0 } }

func above(rps float64) func(int, row) bool { return func(_ int, r row) bool { return r.rps > rps } }

// busyHour is the time that the limit comes from.
var busyHour = between(17*day-12*time.Hour, 17*day-13*time.Hour)

func TestBadData(t *testing.T) {
	clean := laid(fourWeeks(), nil)
	if clean.Refused != "" || clean.NoLower != "" {
		t.Fatalf("clean history is refused: %q, %q", clean.Refused, clean.NoLower)
	}
	present := limit(clean, 0)
	unsorted := func(rows []row) []row {
		rng := rand.New(rand.NewPCG(1, 1))
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		return rows
	}
	tests := []struct {
		name             string
		change           func([]row) []row
		lane             func(*lane, *claim)
		refused, noLower string
		note             string // in one of the notes
	}{
		{"no rows", func([]row) []row { return nil }, nil, noData, "", ""},
		{"only rows of other times", change(every(1), func(r row) []row { return []row{{r.at.Add(-30 * week), 1}} }), nil, noData, "", ""},
		{"only rows of the future", change(every(1), func(r row) []row { return []row{{r.at.Add(30 * week), 1e6}} }), nil, noData, "", ""},
		{"one point", func(rows []row) []row { return rows[4000:4001] }, nil, lowCoverage, "", "1 of 4,064 steps of 5m teach"},
		{"one point, the last", func(rows []row) []row { return rows[len(rows)-1:] }, nil, shortHistory, "", ""},
		{"nine points", func(rows []row) []row { return rows[len(rows)-9:] }, nil, shortHistory, "", ""},
		{"an hour of history", func(rows []row) []row { return rows[len(rows)-12:] }, nil, "", shortHistory, "there is history since 2026-11-30 01:00:00 UTC only"},
		{"the first two weeks and the busy hour are gone", change(between(4*week, 2*week), gone), nil, "", shortHistory, ""},
		{"all zeros", change(every(1), value(0)), nil, zero, "", ""},
		{"all NaN", change(every(1), value(math.NaN())), nil, nan, "", "8,064 of 8,064 steps have a value that is no number"},
		{"all infinite", change(every(1), value(math.Inf(1))), nil, nan, "", ""},
		{"all negative", change(every(1), value(-1)), nil, below, "", ""},
		{"all beyond any load", change(every(1), value(1e300)), nil, nan, "", ""},
		{"every second row missing", change(every(2), gone), nil, lowCoverage, "", "4,031 of 8,063 steps are missing"},
		{"every fourth row missing", change(every(4), gone), nil, lowCoverage, "", ""},
		{"every tenth row missing", change(every(10), gone), nil, "", partial, "steps are missing"},
		{"the busy hour missing", change(busyHour, gone), nil, "", partial, "12 of 8,064 steps are missing"},
		{"one row missing", change(func(i int, _ row) bool { return i == 5000 }, gone), nil, "", partial, "1 of 8,064 steps are missing"},
		{"the highest rows missing", change(above(110), gone), nil, "", partial, ""},
		{"the last two days missing", change(between(2*day, 0), gone), nil, lowCoverage, "", ""},
		{"the last day missing", change(between(day, 0), gone), nil, "", partial, ""},
		{"the last hour missing", change(between(time.Hour, 0), gone), nil, "", partial, ""},
		{"a week in the middle missing", change(between(3*week, 2*week), gone), nil, lowCoverage, "", ""},
		{"one NaN", change(func(i int, _ row) bool { return i == 5000 }, value(math.NaN())), nil, "", nan, "1 of 8,064 steps have a value that is no number"},
		{"the busy hour NaN", change(busyHour, value(math.NaN())), nil, "", nan, ""},
		{"the busy hour infinite", change(busyHour, value(math.Inf(1))), nil, "", nan, ""},
		{"minus infinity", change(busyHour, value(math.Inf(-1))), nil, "", nan, ""},
		{"the busy hour negative", change(busyHour, func(r row) []row { return []row{{r.at, -r.rps}} }), nil, "", below, ""},
		{"a fifth and more negative", change(every(4), value(-5)), nil, below, "", ""},
		{"counter resets read as negative rates", change(every(288), value(-1e9)), nil, "", below, "28 of 8,064 steps have a negative value"},
		{"the busy hour 0", change(busyHour, value(0)), nil, "", zero, "12 of 8,064 steps are 0 where requests were expected"},
		{"a day of zeros", change(between(17*day, 16*day), value(0)), nil, "", zero, ""},
		{"zeros for the last day", change(between(day, 0), value(0)), nil, "", zero, ""},
		{"zeros for the last three days", change(between(3*day, 0), value(0)), nil, zero, "", ""},
		{"zeros for a single step", change(func(i int, _ row) bool { return i == 5000 }, value(0)), nil, "", zero, ""},
		{"every row twice", change(every(1), func(r row) []row { return []row{r, r} }), nil, "", twice, "8,064 of 8,064 steps came twice"},
		{"rows twice, once lower", change(every(1), func(r row) []row { return []row{r, {r.at, r.rps / 2}} }), nil, "", twice, ""},
		{"the busy hour twice, once NaN", change(busyHour, func(r row) []row { return []row{{r.at, math.NaN()}, r} }), nil, "", nan, ""},
		{"not in order", unsorted, nil, "", outOfOrder, ""},
		{"backwards", func(rows []row) []row { slices.Reverse(rows); return rows }, nil, "", outOfOrder, ""},
		{"two rows change places", func(rows []row) []row { rows[9], rows[10] = rows[10], rows[9]; return rows }, nil, "", outOfOrder, "1 of 8,064 steps came after later ones"},
		{"the source warns", nil, func(_ *lane, c *claim) { c.warning = "a store did not answer" }, "", partial, "the source warns: a store did not answer"},
		{"own drops today", nil, marked(12*time.Hour, 11*time.Hour, ownDrops), "", dropped, "12 of 8,064 steps do not teach: grl dropped some of it"},
		{"own drops three weeks ago", nil, marked(3*week, 3*week-day, ownDrops), "", "", "288 of 8,064 steps do not teach"},
		{"own drops all the week", nil, marked(week, 0, ownDrops), dropped, "", ""},
		{"a cap all the week", nil, marked(week, 0, capped), incident, "", "a cap was on the service"},
		{"damaged hours", nil, func(l *lane, _ *claim) { l.blank(5000, 5012, damaged) }, "", unreadable, "12 of 8,064 steps are damaged"},
		{"a third of the fleet is silent for a day", nil, marked(3*day, 2*day, silent), "", partial, "288 of 8,064 steps lack a zone or region that recorded nothing"},
		{"an incident all the week", nil, func(_ *lane, c *claim) {
			c.ignore = []policy.Ignore{{From: night.Add(-week), To: night, Reason: "attack"}}
		}, incident, "", "do not teach: attack"},
		{"an incident that hides what is broken", change(busyHour, value(math.NaN())), func(_ *lane, c *claim) {
			c.ignore = []policy.Ignore{{From: night.Add(-17 * day), To: night.Add(-16 * day), Reason: "attack"}}
		}, "", "", "288 of 8,064 steps do not teach: attack"},
	}
	if len(tests) < 40 {
		t.Errorf("%d fixtures, want 40", len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := fourWeeks()
			if tt.change != nil {
				rows = tt.change(rows)
			}
			u := laid(rows, tt.lane)
			if u.Refused != tt.refused || u.NoLower != tt.noLower {
				t.Errorf("refused %q, not lowered %q; want %q, %q: %v", u.Refused, u.NoLower, tt.refused, tt.noLower, u.Notes)
			}
			if !isWord(u.Refused) || !isWord(u.NoLower) {
				t.Errorf("%q or %q is no word of policy.Refusals", u.Refused, u.NoLower)
			}
			if notes := strings.Join(u.Notes, "; "); !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q in them", notes, tt.note)
			}
			for i, rps := range u.Series.RPS {
				if rps < 0 || rps > 200 {
					t.Fatalf("step %d teaches %v rps", i, rps)
				}
			}
			if got := limit(u, present); got < present && tt.noLower+tt.refused != "" {
				t.Errorf("the limit falls from %v to %v", present, got)
			}
		})
	}
}

// marked marks a time of the lane.
func marked(from, to time.Duration, m mark) func(*lane, *claim) {
	return func(l *lane, _ *claim) { l.markBetween(night.Add(-from), night.Add(-to), m) }
}

// Whatever is done to a subset of the rows, no limit falls, and where rows were
// touched the unit says so.
func TestBadRowsLowerNothing(t *testing.T) {
	rows := fourWeeks()
	present := limit(laid(rows, nil), 0)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"missing", "NaN", "negative", "twice", "late", "mixed"}).Draw(t, "kind")
		from := rapid.IntRange(0, len(rows)-1).Draw(t, "from")
		to := min(len(rows), from+rapid.SampledFrom([]int{1, 3, 12, 288, 2016, 8064}).Draw(t, "length"))
		share := rapid.SampledFrom([]float64{0.01, 0.1, 0.5, 1}).Draw(t, "share")
		highest := rapid.Bool().Draw(t, "highest")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var out, late []row
		touched := 0
		for i, r := range rows {
			hit := i >= from && i < to && rng.Float64() < share || highest && r.rps > 110
			if !hit {
				out = append(out, r)
				continue
			}
			touched++
			how := kind
			if kind == "mixed" {
				how = []string{"missing", "NaN", "negative", "twice", "late"}[rng.IntN(5)]
			}
			switch how {
			case "NaN":
				out = append(out, row{r.at, math.NaN()})
			case "negative":
				out = append(out, row{r.at, -r.rps})
			case "twice":
				out = append(out, r, row{r.at, r.rps * rng.Float64()})
			case "late":
				late = append(late, r)
			}
		}
		slices.Reverse(late) // in order at the end they would be on time
		out = append(out, late...)
		u := laid(out, nil)
		if got := limit(u, present); got < present {
			t.Fatalf("the limit falls from %v to %v: %q, %q, %v", present, got, u.Refused, u.NoLower, u.Notes)
		}
		// Where the first rows are missing the history is shorter, and long enough.
		shorter := len(out) > 0 && len(out) == len(rows)-touched && out[0].at == rows[touched].at
		if u.Refused+u.NoLower == "" && !shorter && !slices.Equal(out, rows) {
			t.Fatalf("%d rows %s, and nothing is said", touched, kind)
		}
	})
}

// The counter-proof: without the word the limit does fall.
func TestBadRowsWouldLower(t *testing.T) {
	rows := fourWeeks()
	present := limit(laid(rows, nil), 0)
	u := laid(change(busyHour, gone)(rows), nil)
	u.NoLower = ""
	if got := limit(u, present); got >= present {
		t.Errorf("limit = %v without the busy hour, want below %v: the fixtures prove nothing", got, present)
	}
}

func TestDays(t *testing.T) {
	u := laid(change(between(26*time.Hour, 25*time.Hour), gone)(fourWeeks()), func(l *lane, _ *claim) {
		n := len(l.rps)
		l.dropped = make([]float64, n)
		l.dropped[n-1] = 7
		l.marks[n-1] |= ownDrops
	})
	if len(u.Days) != 29 {
		t.Fatalf("%d days, want 29: it is 02:00", len(u.Days))
	}
	last, before := u.Days[28], u.Days[27]
	if want := 23. / 24; last.Coverage < 0.999 || math.Abs(before.Coverage-want) > 1e-9 || before.Start != night.Truncate(day).Add(-day) {
		t.Errorf("coverage = %v of %v and %v, want %v and 1", before.Coverage, before.Start, last.Coverage, want)
	}
	if before.Dropped != 0 || last.Dropped != 7 {
		t.Errorf("dropped %v and %v, want 0 and 7", before.Dropped, last.Dropped)
	}
	sum := 0.0
	for _, r := range fourWeeks()[8064-24:] {
		sum += r.rps * 300
	}
	if math.Abs(last.Offered-sum) > 1e-6*sum {
		t.Errorf("offered %v, want %v: what does not teach counts here", last.Offered, sum)
	}
}

func TestZerosThatAreTrue(t *testing.T) {
	tests := []struct {
		name string
		rps  func(time.Time) float64
	}{
		{"closed at night", func(at time.Time) float64 {
			if h := at.Hour(); h < 7 || h > 20 {
				return 0
			}
			return 50
		}},
		{"closed at weekends", func(at time.Time) float64 {
			if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
				return 0
			}
			return 50
		}},
		{"a job every 65 minutes", func(at time.Time) float64 {
			if at.Unix()/300%13 == 0 {
				return 50
			}
			return 0
		}},
		{"a request now and then", func(at time.Time) float64 {
			if rand.New(rand.NewPCG(uint64(at.Unix()), 3)).IntN(20) == 0 {
				return 1. / 300
			}
			return 0
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var rows []row
			for at := night.Add(-4 * week); at.Before(night); at = at.Add(fiveMinutes) {
				rows = append(rows, row{at, tt.rps(at)})
			}
			if u := laid(rows, nil); u.Refused != "" || u.NoLower != "" {
				t.Errorf("refused %q, not lowered %q: %v", u.Refused, u.NoLower, u.Notes)
			}
		})
	}
}

func TestDisagrees(t *testing.T) {
	constant := func(rps float64, end time.Time, unknown int) policy.Series {
		s := policy.Series{Start: end.Add(-2 * time.Hour), Step: time.Minute, RPS: slices.Repeat([]float64{rps}, 120)}
		for i := range unknown {
			s.RPS[119-i] = policy.Unknown
		}
		return s
	}
	tests := []struct {
		name string
		a, b policy.Series
		want bool
	}{
		{"the same", constant(100, night, 0), constant(100, night, 0), false},
		{"a tenth", constant(100, night, 0), constant(90, night, 0), false},
		{"a quarter", constant(100, night, 0), constant(75, night, 0), true},
		{"0 of a live bucket", constant(0, night, 0), constant(100, night, 0), true},
		{"both 0", constant(0, night, 0), constant(0, night, 0), false},
		{"few requests, chance", constant(3./3600, night, 0), constant(8./3600, night, 0), false},
		{"one ends earlier", constant(100, night.Add(-10*time.Minute), 0), constant(100, night, 0), false},
		{"one knows too little", constant(0, night, 40), constant(100, night, 0), false},
		{"one knows enough", constant(50, night, 20), constant(100, night, 0), true},
		{"no series", policy.Series{}, constant(100, night, 0), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Disagrees(tt.a, tt.b); got != tt.want {
				t.Errorf("Disagrees = %v, want %v", got, tt.want)
			}
			if got := Disagrees(tt.b, tt.a); got != tt.want {
				t.Errorf("the other way round = %v, want %v", got, tt.want)
			}
		})
	}
}
