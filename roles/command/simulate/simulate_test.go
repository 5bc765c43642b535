package simulate

import (
	"context"
	"errors"
	"testing"
	"time"

	"grl/roles/fleet"
)

// plan returns the sections of o.
func plan(t *testing.T, o Options) []*Section {
	t.Helper()
	sections, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	return sections
}

// ran returns the sections of o after their run.
func ran(t *testing.T, o Options) []*Section {
	t.Helper()
	sections := plan(t, o)
	for _, s := range sections {
		if err := s.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return sections
}

func TestDefaultsOfAScenario(t *testing.T) {
	tests := []struct {
		name        string
		options     Options
		limit, base float64 // requests per second
		hosts       int
	}{
		{"step", Options{}, 44_000, 22_000, 200},
		{"low", Options{Scenarios: []string{fleet.Low}}, 5, 2.5, 200},
		{"low with a limit", Options{Scenarios: []string{fleet.Low}, LimitRPS: 40}, 40, 20, 200},
		{"more services than hosts", Options{Services: 1100}, 44_000, 22_000, 1100},
		{"more zones than hosts", Options{Zones: 300}, 44_000, 22_000, 300},
		{"base", Options{LimitRPS: 10, BaseRPS: 1}, 10, 1, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := plan(t, tt.options)[0].Options
			if o.LimitRPS != tt.limit || o.BaseRPS != tt.base || o.Hosts != tt.hosts {
				t.Errorf("limit %v, base %v, hosts %d, want %v, %v, %d", o.LimitRPS, o.BaseRPS, o.Hosts, tt.limit, tt.base, tt.hosts)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := plan(t, Options{Laws: []string{All}})[0]
	var last time.Duration
	err := s.Run(ctx, func(law string, at time.Duration) {
		if law != s.Laws[0] {
			t.Errorf("%s runs after the end", law)
		}
		if last = at; at == 3*time.Second {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
	if last < 3*time.Second || last > 5*time.Second {
		t.Errorf("ran until %v, want the end at 3s", last)
	}
}
