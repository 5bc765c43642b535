package policyfile

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"grl/limiter/yamlfile"
	"grl/policy"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// MaxHistory bounds how far a policy looks back: what its memory holds.
const MaxHistory = 26 * week

// span reads whole weeks or days, such as 4w or 14d; 0 after an error.
func (d *decoder) span(n *yamlfile.Node, path string, least, most time.Duration) time.Duration {
	expected := fmt.Sprintf("whole weeks or days from %s to %s, such as 4w or 14d", spanText(least), spanText(most))
	units := map[string]time.Duration{"w": week, "d": day}
	text := n.Text
	if n.Kind != yamlfile.Plain && n.Kind != yamlfile.Quoted || len(text) < 2 {
		d.Fail(n.Place, path, n.Describe(), expected)
		return 0
	}
	unit, ok := units[text[len(text)-1:]]
	count, err := strconv.ParseUint(text[:len(text)-1], 10, 16)
	span := time.Duration(count) * unit
	if !ok || err != nil || span < least || span > most {
		d.Fail(n.Place, path, n.Describe(), expected)
		return 0
	}
	return span
}

func spanText(d time.Duration) string {
	if d%week == 0 {
		return fmt.Sprintf("%dw", d/week)
	}
	return fmt.Sprintf("%dd", d/day)
}

// rps reads requests per second; 0 after an error.
func (d *decoder) rps(n *yamlfile.Node, path, zero string) float64 {
	return d.Decimal(n, path, yamlfile.DecimalRange{
		Expected: "a number of requests per second from 0.001 to 1000000000", Least: policy.LeastRPS, Most: policy.MostRPS, Zero: zero,
	})
}

func rateText(rps float64) string { return strconv.FormatFloat(rps, 'f', -1, 64) }

func (d *decoder) digits(n *yamlfile.Node, path string) int {
	return int(d.Whole(n, path, 0, 6)) // 0: no rounding
}

func (d *decoder) maxStep(n *yamlfile.Node, path string) float64 {
	return d.Decimal(n, path, yamlfile.DecimalRange{
		Expected: "a share of the limit from 0.001 to 1", Least: 0.001, Most: 1, Zero: " (a limit that is never lowered has a floor)",
	})
}

// cycle reads a schedule; "" after an error.
func (d *decoder) cycle(n *yamlfile.Node, path string) string {
	const expected = `a time in cron syntax, such as "0 2 * * *"`
	if n.Kind != yamlfile.Plain && n.Kind != yamlfile.Quoted {
		d.Fail(n.Place, path, n.Describe(), expected)
		return ""
	}
	if _, err := ParseSchedule(n.Text, d.spec.Location); err != nil {
		d.Fail(n.Place, path, yamlfile.Quote(n.Text), expected+": "+err.Error())
		return ""
	}
	return n.Text
}

// timeZone reads the time zone before all other keys, since times need it.
func (d *decoder) timeZone(top *yamlfile.Node) {
	for _, p := range top.Pairs {
		if p.Key.Text != "time_zone" || p.Value == nil {
			continue
		}
		const expected = `the name of a time zone, such as Europe/Berlin`
		name, ok := d.Scalar(p.Value, "time_zone", expected)
		if !ok {
			return
		}
		location, err := loadLocation(name)
		if err != nil {
			d.Fail(p.Value.Place, "time_zone", yamlfile.Quote(name), expected)
			return
		}
		d.spec.Location = location
		return
	}
}

// loadLocation returns a time zone that is the same on all machines.
func loadLocation(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is another time zone on each machine", name)
	}
	return time.LoadLocation(name)
}

// Times without an offset are of the policy's time zone. A day begins at its
// first instant, which is not midnight where clocks are put forward at midnight.
const dayLayout = "2006-01-02"

var localLayouts = []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"}

// time reads a time; zero after an error.
func (d *decoder) time(n *yamlfile.Node, path string) time.Time {
	const expected = "a day or a time, such as 2026-11-27, 2026-11-27 18:00 or 2026-11-27T18:00:00Z"
	if n.Kind != yamlfile.Plain && n.Kind != yamlfile.Quoted {
		d.Fail(n.Place, path, n.Describe(), expected)
		return time.Time{}
	}
	t, err := parseTime(n.Text, d.spec.Location)
	switch {
	case errors.Is(err, errNoTime):
		d.Fail(n.Place, path, yamlfile.Quote(n.Text), expected)
	case err != nil:
		d.Fail(n.Place, path, yamlfile.Quote(n.Text), expected+": "+err.Error())
	case t.Year() < 2000 || t.Year() > 2200:
		d.Fail(n.Place, path, yamlfile.Quote(n.Text), "a year from 2000 to 2200")
	default:
		return t
	}
	return time.Time{}
}

var errNoTime = errors.New("neither a day nor a time")

// parseTime reads RFC 3339, or a day or wall time of a location that is there
// once.
func parseTime(text string, location *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.In(location), nil
	}
	if wall, err := time.Parse(dayLayout, text); err == nil {
		return instant(wall, location), nil
	}
	for _, layout := range localLayouts {
		wall, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		switch instants := instantsOf(wall, location); len(instants) {
		case 0:
			return time.Time{}, fmt.Errorf("clocks in %s skip this time", location)
		case 1:
			return instants[0], nil
		default:
			return time.Time{}, fmt.Errorf("clocks in %s show this time twice: add the offset, as in %s", location, instants[0].Format(time.RFC3339))
		}
	}
	return time.Time{}, errNoTime
}

// instantsOf returns when clocks of a location show a wall time, which is given
// as one of UTC: once, never where they are put forward over it, or twice.
func instantsOf(wall time.Time, location *time.Location) (all []time.Time) {
	// Offsets change by hours at most, and not twice a day.
	_, before := wall.Add(-day).In(location).Zone()
	_, after := wall.Add(day).In(location).Zone()
	for _, offset := range []int{max(before, after), min(before, after)} {
		t := wall.Add(-time.Duration(offset) * time.Second).In(location)
		if _, actual := t.Zone(); actual == offset && (len(all) == 0 || !all[0].Equal(t)) {
			all = append(all, t)
		}
	}
	return all
}

// instant returns the first instant at which clocks of a location show a wall
// time, given as one of UTC, or have skipped it.
func instant(wall time.Time, location *time.Location) time.Time {
	if all := instantsOf(wall, location); len(all) > 0 {
		return all[0]
	}
	// With the offset before clocks are put forward it lies behind that moment.
	_, before := wall.Add(-day).In(location).Zone()
	start, _ := wall.Add(-time.Duration(before) * time.Second).In(location).ZoneBounds()
	return start.In(location)
}
