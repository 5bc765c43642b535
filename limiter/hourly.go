package limiter

import (
	"maps"
	"slices"
	"time"
)

// Hours is how many limits a limit by the hour of the day has.
const Hours = 24

// HasHours reports whether the limits of b change by the hour of the day.
func (b *Bucket) HasHours() bool { return b.Hourly != nil || len(b.RegionHourly) > 0 }

// Location returns where the hours of b are: TimeZone or, if that is empty or
// not known here, UTC. It may read a file.
func (b *Bucket) Location() *time.Location {
	if zone, err := time.LoadLocation(b.TimeZone); err == nil {
		return zone
	}
	return time.UTC
}

// At returns b as it holds at t: with the limits of that hour in LimitRPS and
// Regions, and without limits by the hour. A bucket that has none is returned
// as it is. b is not changed; what the result does not change it shares with b.
func (b *Bucket) At(t time.Time) Bucket {
	if !b.HasHours() {
		return *b
	}
	return b.AtHour(t.In(b.Location()).Hour())
}

// AtHour is At with the hour of the day, in [0, 23].
func (b *Bucket) AtHour(hour int) Bucket {
	at := *b
	at.Hourly, at.RegionHourly, at.TimeZone = nil, nil, ""
	if b.Hourly != nil {
		at.LimitRPS = b.Hourly[hour]
	}
	if len(b.RegionHourly) > 0 {
		at.Regions = maps.Clone(b.Regions)
		for region, hourly := range b.RegionHourly {
			at.Regions[region] = hourly[hour]
		}
	}
	return at
}

// validateHourly checks the limits by the hour of the day.
func (b *Bucket) validateHourly(refuse func(format string, args ...any)) {
	if b.TimeZone != "" && !b.HasHours() {
		refuse("time zone without limits by the hour")
	}
	if _, err := time.LoadLocation(b.TimeZone); err != nil || b.TimeZone == "Local" {
		refuse("unknown time zone %q", b.TimeZone)
	}
	if b.Block && b.HasHours() {
		refuse("blocks and has limits by the hour")
		return
	}
	check := func(what string, hourly []float64, most float64) {
		if len(hourly) != Hours {
			refuse("%d limits by the hour%s, not %d", len(hourly), what, Hours)
		}
		for hour, rps := range hourly {
			if !validLimit(rps) || rps > most {
				refuse("limit %v of hour %d%s is not in [%v, %v] requests per second", rps, hour, what, minLimitRPS, most)
			}
		}
	}
	if b.Hourly != nil {
		check("", b.Hourly, b.LimitRPS)
	}
	for _, region := range slices.Sorted(maps.Keys(b.RegionHourly)) {
		most, ok := b.Regions[region]
		if !ok {
			refuse("limits by the hour of region %q, which has no limit", region)
			continue
		}
		check(" of region \""+region+"\"", b.RegionHourly[region], most)
	}
}
