package policy

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuota(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := &Spec{Kind: "quota", Location: berlin, Quota: []Quota{
		{RPS: 500, From: monday, To: monday.Add(week)},
		{RPS: 800, From: monday.Add(3 * day), To: monday.Add(2 * week), Regions: map[string]float64{"eu": 300}},
		{Regions: map[string]float64{"eu": 200}, From: monday.Add(3 * week)},
		{RPS: 1, From: monday.Add(10 * week)},
	}}
	tests := []struct {
		name     string
		at       time.Duration // after monday
		instance string
		want     float64 // 0: no_quota
		reason   string
	}{
		{"before", -1, "", 0, ""},
		{"from its first moment", 0, "", 500, "agreed from 2 Mar 2026 until 9 Mar 2026"},
		{"the first one valid", 4 * day, "", 500, ""},
		{"until the next", week, "", 800, ""},
		{"of a region", week, "eu", 300, ""},
		{"of another region", week, "us", 800, ""},
		{"a gap", 2 * week, "", 0, ""},
		{"without end", 4 * week, "eu", 200, "agreed from 23 Mar 2026"},
		{"of other regions only", 4 * week, "us", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newQuota(s).Compute(Input{Now: monday.Add(tt.at), Instance: tt.instance})
			if got.LimitRPS != tt.want || (got.Refused == "no_quota") != (tt.want == 0) {
				t.Errorf("limit %v, refused %q, want %v", got.LimitRPS, got.Refused, tt.want)
			}
			if tt.reason != "" && got.Reason != tt.reason {
				t.Errorf("reason %q, want %q", got.Reason, tt.reason)
			}
		})
	}
}

func TestMostEventFactorIsThatOfEveryMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Spec{}
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			from := rapid.IntRange(-100, 100).Draw(t, "from")
			to := from + rapid.IntRange(1, 100).Draw(t, "minutes")
			s.Events = append(s.Events, Event{
				From: monday.Add(time.Duration(from) * time.Minute), To: monday.Add(time.Duration(to) * time.Minute),
				Factor: rapid.Float64Range(0.1, 100).Draw(t, "factor"),
			})
		}
		until := monday.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "until")) * time.Minute)
		want := 0.0
		for at := monday; at.Before(until); at = at.Add(time.Minute) {
			want = max(want, s.eventFactor(at))
		}
		got, at := s.mostEventFactor(monday, until)
		if got != want || s.eventFactor(at) != want || at.Before(monday) || !at.Before(until) {
			t.Fatalf("%v at %v, want %v", got, at, want)
		}
	})
}

func TestCapacityAt(t *testing.T) {
	s := &Spec{Capacity: []Capacity{{monday.Add(week), 300}, {monday, 100}, {monday.Add(2 * week), 200}}}
	tests := []struct {
		name string
		at   time.Time
		want float64
	}{
		{"none yet", monday.Add(-1), math.Inf(1)},
		{"the first", monday, 100},
		{"until the next", monday.Add(week - 1), 100},
		{"the next", monday.Add(week), 300},
		{"it may fall", monday.Add(99 * week), 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.capacityAt(tt.at); got != tt.want {
				t.Errorf("capacity %v, want %v", got, tt.want)
			}
		})
	}
}
