package page

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestZoneNames(t *testing.T) {
	for _, tt := range []struct{ zones, want string }{
		{"", ""},
		{"eu-2", "zone eu-2"},
		{"eu-1 eu-2 us-1", "zones eu-1, eu-2 and us-1"},
		{"region_eu", "region eu"},
		{"region_eu us-1", "zone us-1 and region eu"},
		{"a region_eu us-1", "zones a, us-1 and region eu"},
		{"region_eu region_us", "region eu and region us"},
		{"a b c d e f g h", "zones a, b, c, d, e, f and 2 more"},
	} {
		var zones []string
		for _, z := range strings.Fields(tt.zones) {
			zones = append(zones, strings.ReplaceAll(z, "_", " "))
		}
		if got := ZoneNames(zones); got != tt.want {
			t.Errorf("ZoneNames(%q) = %q, want %q", zones, got, tt.want)
		}
	}
}

// memory is a backend that knows a tree.
type memory struct {
	Backend
	tree Fleet
}

func (m memory) Fleet() Fleet { return m.tree }

func TestSilence(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f := Fleet{
		SilentZones:   []string{"a", "b", "region eu"},
		SilentFor:     map[string]time.Duration{"a": 10 * time.Second, "b": time.Hour, "region eu": 2 * time.Hour},
		SilentCounted: map[string]bool{"a": true},
	}
	for _, tt := range []struct {
		name          string
		zones         []string // of the cells
		figure, notes string
		word          string
		notices       []string
	}{
		{"nothing", nil, "100", "", "", nil},
		{"kept", []string{"a"}, "100", "zone a as last known", "Last known: zone a", []string{
			"No report from zone a since 11:59 UTC: Its last known rates still count in the figures, for a while.",
		}},
		{"missing", []string{"b"}, "≥\u00a0100", "without zone b", "Without zone b", []string{
			"No report from zone b since 11:00 UTC: What it offers now is in no figure: those marked ≥ are at least so high.",
		}},
		{"a region", []string{"region eu"}, "≥\u00a0100", "without region eu", "Without region eu", []string{
			"No report from region eu since 10:00 UTC: What it offers now is in no figure: those marked ≥ are at least so high.",
		}},
		{"all", []string{"a", "b", "region eu"}, "≥\u00a0100", "without 2 zones, zone a as last known", "Without 2 zones", []string{
			"No report from zone b and region eu, the first since 10:00 UTC: What they offer now is in no figure: those marked ≥ are at least so high.",
			"No report from zone a since 11:59 UTC: Its last known rates still count in the figures, for a while.",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := SilenceIn(memory{tree: f}, []Cell{{}, {SilentZones: tt.zones}, {SilentZones: tt.zones}})
			if got := s.AtLeast("100"); got != tt.figure {
				t.Errorf("a figure is %q, want %q", got, tt.figure)
			}
			if got := strings.Join(s.Notes(), ", "); got != tt.notes {
				t.Errorf("its notes are %q, want %q", got, tt.notes)
			}
			if got := s.Word(); got != tt.word || s.Any() != (tt.word != "") {
				t.Errorf("in a row %q, want %q", got, tt.word)
			}
			var got []string
			for _, n := range s.Notices(now) {
				got = append(got, n.Title+" "+n.Since.Text+": "+n.Text)
			}
			if !slices.Equal(got, tt.notices) {
				t.Errorf("notices %q, want %q", got, tt.notices)
			}
		})
	}
}
