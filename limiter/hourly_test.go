package limiter

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// hours returns the same limit for each hour.
func hours(rps float64) []float64 { return slices.Repeat([]float64{rps}, Hours) }

func TestAt(t *testing.T) {
	b := deny("b", "a", "x")
	b.Scope, b.LimitRPS, b.Regions = Region, 24, map[string]float64{"eu": 240, "us": 7}
	b.Hourly, b.RegionHourly = make([]float64, Hours), map[string][]float64{"eu": make([]float64, Hours)}
	for i := range Hours {
		b.Hourly[i], b.RegionHourly["eu"][i] = float64(i+1), float64(10*(i+1))
	}
	tests := []struct {
		name, zone, at string
		want           float64 // requests per second
	}{
		{"UTC", "", "2026-01-15T11:59:59Z", 12},
		{"at the hour", "", "2026-01-15T12:00:00Z", 13},
		{"in winter", "Europe/Berlin", "2026-01-15T12:00:00Z", 14},
		{"in summer", "Europe/Berlin", "2026-07-15T12:00:00Z", 15},
		{"a half hour off", "Asia/Kolkata", "2026-01-15T12:29:59Z", 18},
		{"at the half hour", "Asia/Kolkata", "2026-01-15T12:30:00Z", 19},
		{"a quarter of an hour off", "Asia/Kathmandu", "2026-01-15T12:15:00Z", 19},
		{"before the hour that summer skips", "Europe/Berlin", "2026-03-29T00:59:59Z", 2},
		{"after the hour that summer skips", "Europe/Berlin", "2026-03-29T01:00:00Z", 4},
		{"an hour that comes twice, first", "Europe/Berlin", "2026-10-25T00:30:00Z", 3},
		{"an hour that comes twice, again", "Europe/Berlin", "2026-10-25T01:30:00Z", 3},
		{"the day before", "America/New_York", "2026-01-15T04:00:00Z", 24},
		{"unknown", "Mars/Olympus", "2026-01-15T12:00:00Z", 13},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, test.at)
			if err != nil {
				t.Fatal(err)
			}
			b := b
			b.TimeZone = test.zone
			got := b.At(at)
			want := b
			want.Hourly, want.RegionHourly, want.TimeZone = nil, nil, ""
			want.LimitRPS, want.Regions = test.want, map[string]float64{"eu": 10 * test.want, "us": 7}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("At(%s) = %+v, want %+v", test.at, got, want)
			}
			if b.Regions["eu"] != 240 || b.LimitRPS != 24 {
				t.Errorf("At changed its bucket to %+v", b)
			}
		})
	}
}

func TestAtWithoutHours(t *testing.T) {
	b := deny("b", "a", "x")
	if got := b.At(time.Now()); !reflect.DeepEqual(got, b) {
		t.Errorf("At = %+v, want %+v", got, b)
	}
}

func TestInstallTakesCopiesOfHours(t *testing.T) {
	b := deny("b", "a", "x")
	b.Scope, b.Regions = Region, map[string]float64{"eu": 4}
	b.Hourly, b.RegionHourly = hours(1), map[string][]float64{"eu": hours(1)}
	s := Service{Name: "s", Buckets: []Bucket{b}}
	c := s.clone()
	b.Hourly[0], b.RegionHourly["eu"][0] = 2, 2
	if got := c.Buckets[0]; got.Hourly[0] != 1 || got.RegionHourly["eu"][0] != 1 {
		t.Errorf("the copy has %v and %v of hour 0, want 1 and 1", got.Hourly[0], got.RegionHourly["eu"][0])
	}
}
