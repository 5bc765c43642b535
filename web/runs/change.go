package runs

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
)

// largeChange is the share from which on a change is a large one.
const largeChange = 0.2

// waits reports whether a result waits for a person.
func waits(m *grlv1.RunResult) bool {
	return m.GetOutcome() == grlv1.RunOutcome_RUN_OUTCOME_PROPOSED && m.GetState() == grlv1.ProposalState_PROPOSAL_STATE_PENDING
}

// moved returns which figure of a limit changes, from what to what; false: none
// can be compared, as of a bucket that is new. Of a limit by region it is the
// one that falls most, else the one that rises most.
func moved(m *grlv1.RunResult) (before, after float64, known bool) {
	from, to := m.GetBefore(), m.GetAfter()
	if from == nil || to == nil || m.GetNewBucket() != "" {
		return 0, 0, false
	}
	pairs := [][2]float64{{from.GetRps(), to.GetRps()}}
	for _, region := range slices.Sorted(maps.Keys(to.GetRegionsRps())) {
		was, ok := from.GetRegionsRps()[region]
		if !ok {
			was = from.GetRps()
		}
		pairs = append(pairs, [2]float64{was, to.GetRegionsRps()[region]})
	}
	pairs = append(pairs, hourly(from, to)...)
	if from.GetRps() == to.GetRps() && to.GetCandidateRps() > 0 {
		was := from.GetCandidateRps()
		if was == 0 {
			was = from.GetRps()
		}
		pairs = append(pairs, [2]float64{was, to.GetCandidateRps()})
	}
	best, found := [2]float64{}, false
	for _, p := range pairs {
		if p[0] > 0 && p[1] > 0 && (!found || stronger(p, best)) {
			best, found = p, true
		}
	}
	return best[0], best[1], found
}

// hourly pairs the limits of the same hours.
func hourly(from, to *grlv1.ComputedLimit) [][2]float64 {
	var pairs [][2]float64
	for i, rps := range to.GetHourlyRps() {
		was := from.GetRps()
		if i < len(from.GetHourlyRps()) {
			was = from.GetHourlyRps()[i]
		}
		pairs = append(pairs, [2]float64{was, rps})
	}
	return pairs
}

// stronger reports whether a says more of a change than b: a fall before a rise,
// and the larger one first.
func stronger(a, b [2]float64) bool {
	x, y := a[1]/a[0], b[1]/b[0]
	if x < 1 || y < 1 {
		return x < y
	}
	return x > y
}

// lower reports whether a result lowers a limit.
func lower(m *grlv1.RunResult) bool {
	before, after, known := moved(m)
	return known && after < before
}

// large reports whether it moves one by more than a fifth.
func large(m *grlv1.RunResult) bool {
	before, after, known := moved(m)
	const rounding = 1e-9
	return known && math.Abs(after/before-1) > largeChange+rounding
}

// changeText prints by how much a limit changes: "▲ 10%"; "new" of a bucket that
// is.
func changeText(m *grlv1.RunResult) string {
	before, after, known := moved(m)
	switch {
	case m.GetNewBucket() != "":
		return "new"
	case !known:
		return ""
	case after == before:
		return "0"
	case after > 10*before:
		return "▲ ×" + format.Count(int(math.Round(after/before)))
	case after > before:
		return "▲ " + format.Share(after/before-1)
	}
	return "▼ " + format.Share(1-after/before)
}

// highest returns the highest minute of the days that are known; false: none is.
func highest(peaks []float32) (rps float64, known bool) {
	for _, p := range peaks {
		if p >= 0 {
			rps, known = max(rps, float64(p)), true
		}
	}
	return rps, known
}

// limitOf is the figure that the result is about: the limit, or the candidate
// where the limit beside it stays.
func limitOf(m *grlv1.RunResult) float64 {
	if judges(m) {
		return m.GetAfter().GetCandidateRps()
	}
	return m.GetAfter().GetRps()
}

// judges reports whether a result sets a candidate, which drops nothing.
func judges(m *grlv1.RunResult) bool {
	return m.GetAfter().GetCandidateRps() > 0 && m.GetAfter().GetRps() == m.GetBefore().GetRps()
}

// headroomText is how far the new limit stands above the highest minute: "25%".
func headroomText(m *grlv1.RunResult) string {
	peak, known := highest(m.GetDailyPeaks())
	limit := limitOf(m)
	if !known || peak == 0 || limit == 0 {
		return ""
	}
	return format.Headroom(limit / peak)
}

// daysOver counts the days whose highest minute was above the new limit, and
// those that are known.
func daysOver(m *grlv1.RunResult) (over, known int) {
	limit := limitOf(m)
	for _, p := range m.GetDailyPeaks() {
		if p < 0 {
			continue
		}
		known++
		if limit > 0 && float64(p) > limit {
			over++
		}
	}
	return over, known
}

// rpsText prints the figure of a limit.
func rpsText(l *grlv1.ComputedLimit) string {
	if l == nil {
		return "none"
	}
	return format.RPS(l.GetRps())
}

// besideText prints what a limit has beside its figure: "by hour, candidate
// 9,000".
func besideText(l *grlv1.ComputedLimit) string {
	var parts []string
	if len(l.GetHourlyRps()) > 0 || len(l.GetRegionsHourly()) > 0 {
		parts = append(parts, "by hour")
	}
	for i, region := range slices.Sorted(maps.Keys(l.GetRegionsRps())) {
		if i == mostRegions {
			parts = append(parts, fmt.Sprintf("and %d more regions", len(l.GetRegionsRps())-i))
			break
		}
		parts = append(parts, format.Printable(region)+" "+format.RPS(l.GetRegionsRps()[region]))
	}
	if l.GetCandidateRps() > 0 {
		parts = append(parts, "candidate "+format.RPS(l.GetCandidateRps()))
	}
	return strings.Join(parts, ", ")
}

// aside is a remark in a sentence.
var aside = regexp.MustCompile(` \([^()]*\)`)

// short returns the middle of a sentence such as "19 → 26 rps: the peak of the
// last 4 weeks (its highest second, 1.5 times the mean); 2 steps are missing": the
// row has the figures, and the rest is folded.
func short(reason string) string {
	reason = format.Printable(reason)
	if before, rest, ok := strings.Cut(reason, " rps: "); ok && strings.Contains(before, "→") {
		reason = rest
	}
	middle, _, _ := strings.Cut(reason, "; ")
	if !strings.Contains(middle, `"`) { // a name may have brackets
		middle = aside.ReplaceAllString(middle, "")
	}
	return format.Sentence(middle)
}

// mostRegions is how many regions of a limit are named in a row.
const mostRegions = 3

// committed is a change as it stands in a limits file.
func committed(m *grlv1.RunResult) []diff.Line {
	if m.GetNewBucket() != "" {
		return diff.Lines("", m.GetNewBucket())
	}
	if m.GetAfter() == nil {
		return nil
	}
	return diff.Lines(limitLines(m.GetBucket(), m.GetBefore()), limitLines(m.GetBucket(), m.GetAfter()))
}

// limitLines writes a limit as it stands in a limits file.
func limitLines(bucket string, l *grlv1.ComputedLimit) string {
	_, name, _ := strings.Cut(bucket, "/")
	parts := []string{"rps: " + figure(l.GetRps())}
	if n := l.GetRegionsRps(); len(n) > 0 {
		parts = append(parts, "regions: "+regions(n, figure))
	}
	if len(l.GetHourlyRps()) > 0 {
		parts = append(parts, "hourly: "+hours(l.GetHourlyRps()))
	}
	if n := l.GetRegionsHourly(); len(n) > 0 {
		parts = append(parts, "hourly_regions: "+regions(n, func(h *grlv1.HourlyLimits) string { return hours(h.GetRps()) }))
	}
	if l.GetTimeZone() != "" {
		parts = append(parts, "time_zone: "+l.GetTimeZone())
	}
	text := "- name: " + name + "\n  limit: {" + strings.Join(parts, ", ") + "}\n"
	if l.GetCandidateRps() > 0 {
		text += "  candidate: {rps: " + figure(l.GetCandidateRps()) + "}\n"
	}
	return text
}

func regions[V any](of map[string]V, value func(V) string) string {
	var parts []string
	for _, region := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, region+": "+value(of[region]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func hours(rps []float64) string {
	parts := make([]string, len(rps))
	for i, v := range rps {
		parts[i] = figure(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func figure(rps float64) string { return strconv.FormatFloat(rps, 'f', -1, 64) }
