package alert_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/policy/alert"
)

var start = time.Date(2026, 3, 13, 21, 34, 0, 0, time.UTC)

// story is a row of moments, each with what is known from then on.
type story struct {
	now    time.Time
	memory alert.Memory
}

// pass judges the same each 5 s, over a span of time, the first time 5 s from now.
func (s *story) pass(span time.Duration, in func(now time.Time) alert.Input) {
	for end := s.now.Add(span); s.now.Before(end); {
		s.now = s.now.Add(5 * time.Second)
		s.memory = alert.Step(s.now, in(s.now), s.memory)
	}
}

// said lists what is not quiet: "firing over_limit a/b: text".
func (s *story) said() string {
	var lines []string
	for _, a := range s.memory.List() {
		if a.State != alert.Quiet {
			lines = append(lines, fmt.Sprintf("%s %v %s: %s", []string{"", "pending", "firing"}[a.State], a.Rule, a.Subject, a.Text))
		}
	}
	return strings.Join(lines, "\n")
}

func always(in alert.Input) func(time.Time) alert.Input {
	return func(time.Time) alert.Input { return in }
}

var quiet = always(alert.Input{})

func dropping(share float64) func(time.Time) alert.Input {
	return always(alert.Input{Buckets: []alert.Bucket{{Name: "payments/writes", Offered: 1000, Dropped: 1000 * share}}})
}

func zoneOf(z alert.Zone) func(time.Time) alert.Input {
	z.Name = "eu-2"
	return always(alert.Input{Zones: []alert.Zone{z}})
}

// TestRules: each rule at its bound, with what it says.
func TestRules(t *testing.T) {
	capEnding := func(left time.Duration) func(time.Time) alert.Input {
		return always(alert.Input{Caps: []alert.Cap{{ID: "7", Name: "promo-batch → payments", Ends: start.Add(5*time.Second + left)}}})
	}
	shadow := func(shares ...float64) func(time.Time) alert.Input {
		var in alert.Input
		for i, share := range shares {
			in.Shadows = append(in.Shadows, alert.Shadow{Bucket: "payments/each", Candidate: i > 0, Share: share, Day: start.AddDate(0, 0, -i)})
		}
		return always(in)
	}
	run := func(r alert.Run) func(time.Time) alert.Input { return always(alert.Input{Run: &r}) }
	audit := func(a alert.Audit) func(time.Time) alert.Input { return always(alert.Input{Audit: a}) }
	tests := []struct {
		name string
		in   func(time.Time) alert.Input
		span time.Duration
		want string
	}{
		{"nothing is known", quiet, time.Hour, ""},
		{"drops exactly 1 %", dropping(0.01), time.Hour, ""},
		{"drops nothing of nothing", always(alert.Input{Buckets: []alert.Bucket{{Name: "a/b"}}}), time.Hour, ""},
		{"drops more than 1 %, just now", dropping(0.153), 5 * time.Second, "pending over_limit payments/writes: payments/writes drops 15.3%"},
		{"and for less than 5 minutes", dropping(0.153), 5 * time.Minute, "pending over_limit payments/writes: payments/writes drops 15.3% for 4 min"},
		{"and for 5 minutes", dropping(0.0101), 5*time.Minute + 5*time.Second, "firing over_limit payments/writes: payments/writes drops 1.0% for 5 min"},

		{"directive of 5 s", zoneOf(alert.Zone{DirectiveAge: 5 * time.Second}), time.Minute, ""},
		{"no directive yet", zoneOf(alert.Zone{DirectiveAge: -1}), time.Minute, ""},
		{"directive of 12 s", zoneOf(alert.Zone{DirectiveAge: 12 * time.Second}), 5 * time.Second, "firing directive_stale eu-2: zone eu-2, 12 s old"},
		{"a zone silent for 5 s", zoneOf(alert.Zone{Silent: 5 * time.Second}), 5 * time.Second, ""},
		{"a zone silent for an hour", zoneOf(alert.Zone{DirectiveAge: -1, Silent: time.Hour}), 5 * time.Second, "firing directive_stale eu-2: zone eu-2, 1 h old"},

		{"cap with 10 minutes left", capEnding(10 * time.Minute), 5 * time.Second, ""},
		{"cap with less", capEnding(9*time.Minute + 59*time.Second), 5 * time.Second, "firing cap_ending 7: promo-batch → payments ends in 9 min"},
		{"cap with 8 s left", capEnding(8 * time.Second), 5 * time.Second, "firing cap_ending 7: promo-batch → payments ends in 8 s"},
		{"cap that has ended", capEnding(0), 5 * time.Second, ""},

		{"shadow of 1 % of a day", shadow(0.01), 5 * time.Second, ""},
		{"shadow of more", shadow(0.032), 5 * time.Second, "firing shadow_would_hurt payments/each: payments/each would have dropped 3.2% of Fri 13 Mar"},
		{"two limits of a bucket: the worse one", shadow(0.02, 0.5), 5 * time.Second, "firing shadow_would_hurt payments/each: the candidate of payments/each would have dropped 50.0% of Thu 12 Mar"},

		{"a good run", run(alert.Run{ID: 9}), 5 * time.Second, ""},
		{"a run that failed", run(alert.Run{ID: 9, Failed: "no history"}), 5 * time.Second, "firing rlc_refused : run 9 failed: no history"},
		{"a run that refused", run(alert.Run{ID: 9, Refused: 1, Broken: 2}), 5 * time.Second, "firing rlc_refused : run 9 could not judge 1 bucket and failed at 2 buckets"},

		{"audit changed", audit(alert.Audit{Broken: 12, Reason: "it is missing"}), 5 * time.Second, "firing audit_broken : entry 12: it is missing"},
		{"audit that cannot be read", audit(alert.Audit{Lost: "the store does not answer"}), 5 * time.Second, "firing audit_broken : entries cannot be read: the store does not answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := story{now: start}
			s.pass(tt.span, tt.in)
			if got := s.said(); got != tt.want {
				t.Errorf("after %v:\n%s\nwant:\n%s", tt.span, got, tt.want)
			}
		})
	}
}

// TestHostsLost: hosts that leave are missed from 10 s on, for 10 minutes, unless
// others come in their place.
func TestHostsLost(t *testing.T) {
	type step struct {
		hosts  int
		silent time.Duration
		span   time.Duration
	}
	const minutes = time.Minute
	tests := []struct {
		name  string
		steps []step
		want  string
	}{
		{"none left", []step{{10, 0, 5 * minutes}}, ""},
		{"one left, for less than 10 s", []step{{10, 0, minutes}, {9, 0, 10 * time.Second}}, ""},
		{"one left, for 10 s", []step{{10, 0, minutes}, {9, 0, 15 * time.Second}}, "firing host_lost eu-2: 1 host of eu-2 is silent"},
		{"and came back", []step{{10, 0, minutes}, {9, 0, 15 * time.Second}, {10, 0, minutes}}, ""},
		{"all left", []step{{10, 0, minutes}, {0, 0, 15 * time.Second}}, "firing host_lost eu-2: 10 hosts of eu-2 are silent"},
		{"missed for 10 minutes", []step{{10, 0, minutes}, {7, 0, 10 * minutes}}, "firing host_lost eu-2: 3 hosts of eu-2 are silent"},
		{"and then no more", []step{{10, 0, minutes}, {7, 0, 12 * minutes}}, ""},
		{"missed for as long as the zone is silent", []step{{10, 0, minutes}, {0, 1, 60 * minutes}}, "firing directive_stale"},
		{"another one came before", []step{{10, 0, minutes}, {12, 0, minutes}, {10, 0, 5 * minutes}}, ""},
		{"another one came long before", []step{{10, 0, minutes}, {12, 0, 20 * minutes}, {10, 0, minutes}}, "firing host_lost eu-2: 2 hosts of eu-2 are silent"},
		{"came one after another at first", []step{{2, 0, 5 * time.Second}, {6, 0, 5 * time.Second}, {10, 0, minutes}, {8, 0, 15 * time.Second}}, "firing host_lost eu-2: 2 hosts of eu-2 are silent"},
		{"some came back", []step{{10, 0, minutes}, {4, 0, 15 * time.Second}, {7, 0, 15 * time.Second}}, "firing host_lost eu-2: 3 hosts of eu-2 are silent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := story{now: start}
			for _, step := range tt.steps {
				began := s.now
				s.pass(step.span, func(now time.Time) alert.Input {
					silent := time.Duration(0)
					if step.silent > 0 {
						silent = now.Sub(began)
					}
					return zoneOf(alert.Zone{Hosts: step.hosts, Silent: silent})(now)
				})
			}
			if tt.want == "firing directive_stale" { // of an hour, beside the hosts
				tt.want = "firing host_lost eu-2: 10 hosts of eu-2 are silent\nfiring directive_stale eu-2: zone eu-2, 1 h old"
			}
			if got := s.said(); got != tt.want {
				t.Errorf("%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// TestZoneGone: the hosts of a zone that nobody tells of any more are missed too.
func TestZoneGone(t *testing.T) {
	s := story{now: start}
	s.pass(time.Minute, zoneOf(alert.Zone{Hosts: 4}))
	s.pass(15*time.Second, quiet)
	if got, want := s.said(), "firing host_lost eu-2: 4 hosts of eu-2 are silent"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoFlapping: what fires goes on through less than a minute of quiet, and what
// is pending does not.
func TestNoFlapping(t *testing.T) {
	s := story{now: start}
	s.pass(4*time.Minute, dropping(0.5))
	s.pass(5*time.Second, dropping(0))
	s.pass(5*time.Minute, dropping(0.5))
	if got, want := s.said(), "pending over_limit payments/writes: payments/writes drops 50.0% for 4 min"; got != want {
		t.Errorf("after a gap of 5 s in 9 minutes: %q, want %q", got, want)
	}
	s.pass(5*time.Second, dropping(0.5))
	for range 10 {
		s.pass(55*time.Second, dropping(0))
		if got := s.memory.Firing(); len(got) != 1 {
			t.Fatalf("%d fire after 55s of quiet, want 1", len(got))
		}
		s.pass(5*time.Second, dropping(0.5))
	}
	since := s.memory.Firing()[0].Since
	if want := start.Add(4*time.Minute + 10*time.Second); !since.Equal(want) {
		t.Errorf("fires since %v, want %v", since, want)
	}
	s.pass(time.Minute, quiet)
	if got := s.memory.Firing(); len(got) != 0 {
		t.Errorf("%v fires after a minute of quiet", got)
	}
	for _, a := range s.memory.List() {
		if a.Rule == alert.OverLimit && !a.Since.Equal(s.now.Add(-5*time.Second)) {
			t.Errorf("fired last at %v, want %v", a.Since, s.now.Add(-5*time.Second))
		}
	}
}

// TestBound: of more subjects than are followed those stay that are followed, then
// the worst.
func TestBound(t *testing.T) {
	many := func(n int) func(time.Time) alert.Input {
		var in alert.Input
		for i := range n {
			in.Buckets = append(in.Buckets, alert.Bucket{Name: fmt.Sprintf("s/%05d", i), Offered: 100_000, Dropped: 2000 + float64(i)})
		}
		return always(in)
	}
	s := story{now: start}
	s.pass(5*time.Second, many(600))
	s.pass(10*time.Minute, many(5000))
	firing := s.memory.Firing()
	if len(firing) != alert.MaxSubjects {
		t.Fatalf("%d fire, want %d", len(firing), alert.MaxSubjects)
	}
	got := make(map[string]bool)
	for _, a := range firing {
		got[a.Subject] = true
	}
	for _, want := range []string{"s/00000", "s/00599", "s/04999", "s/04600"} {
		if !got[want] {
			t.Errorf("%s does not fire", want)
		}
	}
	if got["s/00600"] || got["s/04599"] {
		t.Error("one fires that is neither followed nor among the worst")
	}
}

// TestWords: every rule has a word of its own.
func TestWords(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range alert.Rules() {
		back, ok := alert.ParseRule(r.String())
		if !ok || back != r || seen[r.String()] {
			t.Errorf("rule %d: %q is read as %d, %v", r, r, back, ok)
		}
		seen[r.String()] = true
	}
	if _, ok := alert.ParseRule("unknown"); ok || len(seen) != 7 {
		t.Errorf("%d words; \"unknown\" is one: %v", len(seen), ok)
	}
}

// TestCause: of random stories, nothing fires but what held at every step for as
// long as its rule says, and what held within the last minute; all that does fires
// or is beyond the bound; the text is of the subject.
func TestCause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := story{now: start}
		heldSince := make(map[string]time.Time) // bucket → since when it drops more than 1 %
		heldLast := make(map[string]time.Time)
		fires := make(map[string]bool)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			var in alert.Input
			for _, name := range []string{"a/a", "a/b", "b/c"} {
				share := rapid.SampledFrom([]float64{0, 0.01, 0.0101, 0.5, 1}).Draw(t, name)
				if rapid.Float64Range(0, 1).Draw(t, "steady") < 0.9 {
					share = map[bool]float64{true: 0.5}[name != "a/b"]
				}
				in.Buckets = append(in.Buckets, alert.Bucket{Name: name, Offered: 100, Dropped: 100 * share})
			}
			gap := time.Duration(rapid.IntRange(1, 40).Draw(t, "gap")) * time.Second
			s.now = s.now.Add(gap)
			s.memory = alert.Step(s.now, in, s.memory)
			for _, b := range in.Buckets {
				switch {
				case b.Dropped <= 1:
					delete(heldSince, b.Name)
				case heldSince[b.Name].IsZero():
					heldSince[b.Name] = s.now
					fallthrough
				default:
					heldLast[b.Name] = s.now
				}
				holds := !heldSince[b.Name].IsZero()
				switch {
				case holds && s.now.Sub(heldSince[b.Name]) >= 5*time.Minute:
					fires[b.Name] = true
				case !holds && s.now.Sub(heldLast[b.Name]) >= alert.Kept:
					fires[b.Name] = false
				}
			}
			firing := make(map[string]bool)
			for _, a := range s.memory.Firing() {
				firing[a.Subject] = true
				if !strings.HasPrefix(a.Text, a.Subject) {
					t.Fatalf("text %q of %q", a.Text, a.Subject)
				}
			}
			for name, want := range fires {
				if firing[name] != want {
					t.Fatalf("at %v: %s fires: %v, want %v", s.now.Sub(start), name, firing[name], want)
				}
			}
		}
	})
}

// TestAnything: no input makes a step fail, or the memory grow beyond its bounds.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := story{now: start}
		number := rapid.SampledFrom([]float64{0, 1, -1, 1e-300, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)})
		age := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "age")) })
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			var in alert.Input
			for range rapid.IntRange(0, 3).Draw(t, "each") {
				name := rapid.String().Draw(t, "name")
				in.Buckets = append(in.Buckets, alert.Bucket{Name: name, Offered: number.Draw(t, "offered"), Dropped: number.Draw(t, "dropped")})
				in.Shadows = append(in.Shadows, alert.Shadow{Bucket: name, Share: number.Draw(t, "share"), Day: start})
				in.Zones = append(in.Zones, alert.Zone{Name: name, Hosts: rapid.Int().Draw(t, "hosts"), DirectiveAge: age.Draw(t, "of directive"), Silent: age.Draw(t, "silent")})
				in.Caps = append(in.Caps, alert.Cap{ID: name, Name: name, Ends: start.Add(age.Draw(t, "left"))})
			}
			s.pass(5*time.Second, always(in))
			for _, a := range s.memory.List() {
				if strings.Contains(a.Text, "NaN") || strings.Contains(a.Text, "Inf") {
					t.Fatalf("text %q", a.Text)
				}
			}
		}
	})
}
