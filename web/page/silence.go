package page

import (
	"slices"
	"strings"
	"time"

	"grl/web/format"
)

// Silence is what figures lack since nothing is heard of some zones. The zero
// value is that they lack nothing.
type Silence struct {
	missing []quiet // what they offer now is in no figure
	kept    []quiet // their last known rates still count
}

// quiet is a zone from which no report comes.
type quiet struct {
	name  string
	since time.Duration
}

// Silence returns what the figures of all zones lack.
func (f *Fleet) Silence() Silence { return f.SilenceOf(f.SilentZones) }

// SilenceOf returns what figures lack in which some of the silent zones are, as
// Cell.SilentZones has them.
func (f *Fleet) SilenceOf(zones []string) Silence {
	var s Silence
	for _, name := range zones {
		q := quiet{name, f.SilentFor[name]}
		if f.SilentCounted[name] {
			s.kept = append(s.kept, q)
		} else {
			s.missing = append(s.missing, q)
		}
	}
	return s
}

// SilenceIn returns what figures lack that sum some cells.
func SilenceIn(b Backend, cells []Cell) Silence {
	var zones []string
	for i := range cells {
		for _, z := range cells[i].SilentZones {
			if !slices.Contains(zones, z) {
				zones = append(zones, z)
			}
		}
	}
	if len(zones) == 0 {
		return Silence{} // as nearly always: the tree need not be gone through
	}
	slices.Sort(zones)
	f := b.Fleet()
	return f.SilenceOf(zones)
}

// Any reports whether the figures lack something.
func (s Silence) Any() bool { return len(s.missing)+len(s.kept) > 0 }

// Missing reports whether the load of a zone is not in the figures at all.
func (s Silence) Missing() bool { return len(s.missing) > 0 }

// AtLeast marks a sum, ready to print, from which something is missing: "≥ 1,240",
// in one piece.
func AtLeast(figure string) string { return "≥\u00a0" + figure }

// AtLeast marks a sum if the load of a zone is missing from it.
func (s Silence) AtLeast(figure string) string {
	if s.Missing() {
		return AtLeast(figure)
	}
	return figure
}

// Notes say at a figure what it lacks: "without zone eu-2", "zone us-1 as last
// known"; none: nothing.
func (s Silence) Notes() []string {
	var notes []string
	if len(s.missing) > 0 {
		notes = append(notes, "without "+few(s.missing))
	}
	if len(s.kept) > 0 {
		notes = append(notes, few(s.kept)+" as last known")
	}
	return notes
}

// Since returns when the first of the zones fell silent, whose history ends
// there; false: none has.
func (s Silence) Since(now time.Time) (time.Time, bool) {
	longest := time.Duration(0)
	for _, q := range slices.Concat(s.missing, s.kept) {
		longest = max(longest, q.since)
	}
	return now.Add(-longest), longest > 0
}

// GapText names the span of a chart in which the zones are not: "without zone
// eu-2".
func (s Silence) GapText() string { return "without " + few(slices.Concat(s.missing, s.kept)) }

// Word is the same in a row, where there is room for one name; "": nothing.
func (s Silence) Word() string {
	switch {
	case len(s.missing) > 0:
		return "Without " + few(s.missing)
	case len(s.kept) > 0:
		return "Last known: " + few(s.kept)
	}
	return ""
}

// few returns "zone eu-2" or, of several, how many they are.
func few(zones []quiet) string {
	if len(zones) == 1 {
		return ZoneNames([]string{zones[0].name})
	}
	return format.Plural(len(zones), "zone")
}

// Notices say above the figures which zones are silent since when, and what the
// figures lack of them.
func (s Silence) Notices(now time.Time) []Notice {
	var out []Notice
	if len(s.missing) > 0 {
		text := "What it offers now is in no figure: those marked ≥ are at least so high."
		if len(s.missing) > 1 {
			text = "What they offer now is in no figure: those marked ≥ are at least so high."
		}
		out = append(out, silentNotice(s.missing, text, now))
	}
	if len(s.kept) > 0 {
		text := "Its last known rates still count in the figures, for a while."
		if len(s.kept) > 1 {
			text = "Their last known rates still count in the figures, for a while."
		}
		out = append(out, silentNotice(s.kept, text, now))
	}
	return out
}

func silentNotice(zones []quiet, text string, now time.Time) Notice {
	names, longest := make([]string, 0, len(zones)), time.Duration(0)
	for _, z := range zones {
		names, longest = append(names, z.name), max(longest, z.since)
	}
	n := Notice{Kind: "warn", Title: "No report from " + ZoneNames(names), Text: text, Link: Crumb{Name: "What its hosts do", Path: "/fleet"}}
	since := " since"
	if len(zones) > 1 {
		n.Link.Name, since = "What their hosts do", ", the first since"
	}
	if longest > 0 {
		n.Since = format.NewStamp(now.Add(-longest), now)
		n.Title += since
	}
	return n
}

const shownZones = 6 // silent zones named in a sentence

// ZoneNames returns "zone eu-2", "zones a, b and c", "zone eu-2 and region us"
// or, of many, the first and how many more. A region is "region NAME".
func ZoneNames(zones []string) string {
	zones = slices.Clone(zones)
	slices.SortStableFunc(zones, func(a, b string) int { return isRegion(a) - isRegion(b) })
	word := "zones "
	switch {
	case len(zones) == 0:
		return ""
	case isRegion(zones[0]) == 1:
		word = ""
	case len(zones) == 1 || isRegion(zones[1]) == 1:
		word = "zone "
	}
	return word + Listed(zones)
}

// Listed returns names as "a, b and c" or, of many, the first and how many more.
func Listed(all []string) string {
	names := make([]string, 0, shownZones+1)
	for _, z := range all[:min(len(all), shownZones)] {
		names = append(names, format.Printable(z))
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, format.Count(more)+" more")
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// isRegion returns 1 if a silent zone is a region, which says so, else 0.
func isRegion(zone string) int {
	if strings.HasPrefix(zone, "region ") {
		return 1
	}
	return 0
}

// ConfirmedText says how many of the hosts that report hold something, and how
// many there are of which nothing is heard: "2 of 2 hosts confirmed it."
func ConfirmedText(have, hosts, unheard int) string {
	return format.Count(have) + " of " + format.Plural(hosts, "host") + " confirmed it." + UnheardText(unheard)
}

// UnheardText is a sentence to add after how many hosts hold something; "": all
// are heard.
func UnheardText(hosts int) string {
	switch {
	case hosts == 0:
		return ""
	case hosts == 1:
		return " 1 more is in a zone that is silent: not known."
	}
	return " " + format.Count(hosts) + " more are in zones that are silent: not known."
}
