package limitsfile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

// hourlyPlaces are where a limit says what holds by the hour.
type hourlyPlaces struct {
	hourly  *yamlfile.Node            // nil: nowhere
	regions map[string]*yamlfile.Node // region → its hours
}

// hourly reads the limits of the 24 hours of the day; nil after an error.
func (d *decoder) hourly(n *yamlfile.Node, path string) []float64 {
	const expected = "a list of 24 limits, of the hours of the day from midnight on"
	switch {
	case n.Kind != yamlfile.List:
		d.Fail(n.Place, path, n.Describe(), expected)
		return nil
	case len(n.Items) != limiter.Hours:
		d.Fail(n.Place, path, fmt.Sprintf("a list of %d", len(n.Items)), expected)
		return nil
	}
	before := len(d.Errs)
	hourly := make([]float64, limiter.Hours)
	for hour, item := range n.Items {
		hourly[hour] = d.Decimal(item, fmt.Sprintf("%s[%d]", path, hour), yamlfile.DecimalRange{
			Expected: "a number of requests per second from 0.001 to 1000000000", Least: MinRPS, Most: MaxRPS,
			Zero: " (no hour can be blocked)",
		})
	}
	if len(d.Errs) > before {
		return nil
	}
	return hourly
}

// regionHourly reads a mapping from region to the limits of its hours.
func (d *decoder) regionHourly(n *yamlfile.Node, path string, places *hourlyPlaces) (regions map[string][]float64) {
	d.Regions(n, path, "a mapping from region to a list of 24 limits", MaxRegions, func(region string, v *yamlfile.Node, path string) {
		if regions == nil {
			regions, places.regions = map[string][]float64{}, map[string]*yamlfile.Node{}
		}
		regions[region], places.regions[region] = d.hourly(v, path), v
	})
	return regions
}

// timeZone reads the name of a time zone; "" after an error.
func (d *decoder) timeZone(n *yamlfile.Node, path string) string {
	zone, ok := d.Scalar(n, path, "the name of a time zone, such as Europe/Berlin")
	if !ok {
		return ""
	}
	if _, err := time.LoadLocation(zone); zone == "" || zone == "Local" || len(zone) > MaxNameBytes || err != nil {
		d.Fail(n.Place, path, yamlfile.Quote(zone), "the name of a time zone, such as Europe/Berlin (leave time_zone out for UTC)")
		return ""
	}
	return zone
}

// hourlyWhole checks what the limits by the hour say beside the others.
func (d *decoder) hourlyWhole(path string, seen map[string]yamlfile.Place, b *limiter.Bucket, places *hourlyPlaces) {
	_, has := seen["hourly"]
	_, hasRegions := seen["hourly_regions"]
	if at, zone := seen["time_zone"]; zone && !has && !hasRegions {
		d.Fail(at, path+".time_zone", "time_zone without hours", "hourly or hourly_regions beside it")
	}
	d.hoursWithin(path+".hourly", places.hourly, b.Hourly, b.LimitRPS, "rps")
	for _, region := range slices.Sorted(maps.Keys(b.RegionHourly)) {
		at := yamlfile.Join(path+".hourly_regions", region)
		most, ok := b.Regions[region]
		if !ok && region != "" {
			d.Fail(places.regions[region].Place, at, "a region without a limit", `its most in "regions", as {regions: {`+scalar(region)+`: 400}}`)
			continue
		}
		d.hoursWithin(at, places.regions[region], b.RegionHourly[region], most, "regions."+region)
	}
}

// hoursWithin checks that no hour has more than the limit that key says; 0 is
// one that was refused.
func (d *decoder) hoursWithin(path string, n *yamlfile.Node, hourly []float64, most float64, key string) {
	for hour, rps := range hourly {
		if rps > most && most > 0 {
			d.Fail(n.Items[hour].Place, fmt.Sprintf("%s[%d]", path, hour), numberText(rps), fmt.Sprintf("at most what %s says, %s", key, numberText(most)))
		}
	}
}
