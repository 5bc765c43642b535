package controller

import (
	"slices"
	"testing"
	"time"

	"grl/limiter"
	"grl/proto/wire"
	"grl/store/ledger"
)

func TestHourOf(t *testing.T) {
	now := time.Date(2026, 11, 30, 14, 3, 0, 0, time.UTC)
	for _, tt := range []struct {
		name       string
		said, made time.Time
		want       time.Time
	}{
		{"nobody said", time.Time{}, now.Add(-time.Hour), now},
		{"said", now.Add(-3 * time.Minute), now.Add(-time.Hour), now.Add(-3 * time.Minute)},
		{"said before a long time without hours", now.AddDate(0, -1, 0), now.Add(-time.Hour), now.Add(-time.Hour)},
		{"made by a clock that is ahead", now.Add(-3 * time.Minute), now.AddDate(1, 0, 0), now.Add(-3 * time.Minute)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := ledger.State{Incident: ledger.Incident{Hour: tt.said}, Head: ledger.Revision{At: tt.made}}
			if got := hourOf(s, now); !got.Equal(tt.want) {
				t.Errorf("hourOf = %v, want %v", got, tt.want)
			}
		})
	}
}

// hourly returns a bucket whose limit of an hour is that hour plus 1.
func hourly(service, zone string) limiter.Bucket {
	b := limiter.Bucket{Service: service, Name: "b", LimitRPS: 24, Behavior: limiter.Deny, TimeZone: zone, Hourly: make([]float64, limiter.Hours)}
	for hour := range b.Hourly {
		b.Hourly[hour] = float64(hour + 1)
	}
	return b
}

// A change of the hour is sent as a change of the services with limits by the
// hour that it moves.
func TestChangeOfHourIsSmall(t *testing.T) {
	services := []limiter.Service{
		{Name: "constant", Buckets: []limiter.Bucket{{Service: "constant", Name: "b", LimitRPS: 5}}},
		{Name: "flat", Buckets: []limiter.Bucket{hourly("flat", "")}},
		{Name: "half", Buckets: []limiter.Bucket{hourly("half", "Asia/Kolkata")}},
		{Name: "whole", Buckets: []limiter.Bucket{hourly("whole", "Europe/Berlin")}},
	}
	copy(services[1].Buckets[0].Hourly, slices.Repeat([]float64{7}, limiter.Hours))
	at := func(minute int) *limiter.Configuration {
		effective, hourly := newClock(time.Date(2026, 11, 30, 13, minute, 0, 0, time.UTC)).limits(services)
		if len(hourly) != 3 {
			t.Fatalf("%d buckets with limits by the hour, want 3", len(hourly))
		}
		return &limiter.Configuration{Epoch: 1, Revision: 1, Serial: uint64(100 + minute), Services: effective}
	}
	for _, tt := range []struct {
		name     string
		from, to int // minutes after 13:00
		want     []string
	}{
		{"at a quarter", 0, 15, nil},
		{"at the half", 15, 30, []string{"half"}},
		{"at the hour", 45, 60, []string{"whole"}},
		{"over an hour", 0, 60, []string{"half", "whole"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			m := wire.Change(at(tt.from), at(tt.to))
			for _, s := range m.GetServices() {
				got = append(got, s.GetName())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("sent %v, want %v", got, tt.want)
			}
			if next, err := wire.ToConfiguration(at(tt.from), m); err != nil || next.ByName()["whole/b"].LimitRPS != at(tt.to).ByName()["whole/b"].LimitRPS {
				t.Errorf("taken as %+v, %v", next, err)
			}
			one, two := newClock(time.Date(2026, 11, 30, 13, tt.from, 0, 0, time.UTC)), newClock(time.Date(2026, 11, 30, 13, tt.to, 0, 0, time.UTC))
			differs := false
			for i := range services {
				for j := range services[i].Buckets {
					differs = differs || two.differs(&services[i].Buckets[j], one)
				}
			}
			if differs != (len(tt.want) > 0) {
				t.Errorf("differs is %v, want %v", differs, !differs)
			}
		})
	}
	if services[3].Buckets[0].LimitRPS != 24 || services[3].Buckets[0].Hourly == nil {
		t.Errorf("the services that were read have changed: %+v", services[3])
	}
}

// The gate steps once at the hour: what was decided of the cell stays until it is
// decided anew by the other limit.
func TestStepOfALimit(t *testing.T) {
	r := newRig(t, limits(1, map[string]float64{"a": 1000}))
	r.warm()
	s := newSpeaker("a1", "z1", 1)
	s.join(r)
	a := limiter.CellID{Bucket: "pay/a"}
	run := func(rounds int) {
		for range rounds {
			s.report(said{id: a, rps: 2000})
			r.pass(time.Second)
			r.n.renew(r.now)
			s.takes()
		}
	}
	run(30)
	near(t, "before", s.admits[a], 0.5)
	for _, step := range []struct {
		serial uint64
		rps    float64
	}{{1, 1600}, {2, 400}, {3, 1000}} {
		c := limits(1, map[string]float64{"a": step.rps})
		c.Serial = step.serial
		r.n.install(c, nil, nil)
		if m := s.takes(); m.GetSerial() != step.serial {
			t.Fatalf("sent serial %d, want %d", m.GetSerial(), step.serial)
		}
		run(2)
		near(t, "two seconds after the step", s.admits[a], step.rps/2000)
		run(10)
		near(t, "later", s.admits[a], step.rps/2000)
	}
}
