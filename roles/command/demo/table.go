package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
)

// rowFormat has a name, three rates, a ratio and a remark.
const rowFormat = "%-34s %10s %10s %8s %7s  %s"

// line is one second in one line, for output that is no terminal.
func (s *screen) line(elapsed time.Duration, byZone [len(zones)]window) string {
	all := s.cell(bucketAll)
	var b strings.Builder
	total := sum(byZone)
	fmt.Fprintf(&b, "%3d s  %-6s  offered %5d  admitted %5d  limit %5s  ratio %4s", seconds(elapsed), s.phase(elapsed),
		total.offered, total.admitted, rps(s.plan.limits.all), percent(all.GetDropRatio()))
	for z, zone := range zones {
		fmt.Fprintf(&b, " | %s offered %5d  admitted %5d  dropped %4s", zone, byZone[z].offered, byZone[z].admitted, percent(byZone[z].ratio()))
	}
	return b.String() + "\n"
}

// table is one second as a table, for a terminal.
func (s *screen) table(elapsed time.Duration, byZone [len(zones)]window) string {
	lines := []string{s.progress(elapsed), "", row("requests per second", "offered", "admitted", "limit", "ratio", "")}
	for z, zone := range zones {
		w := byZone[z]
		lines = append(lines, row(zone, rps(float64(w.offered)), rps(float64(w.admitted)), "", percent(w.ratio()), "dropped of what it was offered"))
	}
	total := sum(byZone)
	lines = append(lines, row(bucketAll, rps(float64(total.offered)), rps(float64(total.admitted)),
		rps(s.plan.limits.all), percent(s.cell(bucketAll).GetDropRatio()), "enforced: the ratio that the controller sends"))
	if c := s.cell(bucketProducts); c != nil {
		lines = append(lines, shadowRow(bucketProducts, c, "shadow: would drop, drops nothing"))
	}
	for _, c := range s.perCaller() {
		lines = append(lines, shadowRow(bucketPerCaller+" "+c.GetCaller(), c, "shadow, a limit for each caller"))
	}
	return strings.Join(lines, "\n") + "\n"
}

// progress is the line above the table.
func (s *screen) progress(elapsed time.Duration) string {
	done := int(barWidth * elapsed / s.plan.total)
	return fmt.Sprintf("[%s%s] %d of %d s: %s", strings.Repeat("#", done), strings.Repeat("-", barWidth-done),
		seconds(elapsed), seconds(s.plan.total), s.phase(elapsed).describe(s.plan))
}

// phase returns that of the second that has ended.
func (s *screen) phase(elapsed time.Duration) phase {
	return s.plan.at(elapsed.Truncate(time.Second) - 1)
}

// describe says what a phase plays.
func (p phase) describe(plan plan) string {
	switch p {
	case beforeSurge:
		return fmt.Sprintf("the trace at %d times its speed", baseSpeed)
	case inSurge:
		return fmt.Sprintf("the surge, %s times as much", number(plan.surge))
	default:
		return "back to where it was"
	}
}

func shadowRow(name string, c *grlv1.BucketView, remark string) string {
	return row(name, rps(c.GetOfferedRps()), rps(c.GetAdmittedRps()), rps(c.GetLimitRps()), percent(c.GetDropRatio()), remark)
}

func row(name, offered, admitted, limit, ratio, remark string) string {
	return strings.TrimRight(fmt.Sprintf(rowFormat, name, offered, admitted, limit, ratio, remark), " ")
}

// cell returns what the controller said of a bucket; nil: nothing yet.
func (s *screen) cell(bucket string) *grlv1.BucketView {
	i := slices.IndexFunc(s.cells, func(c *grlv1.BucketView) bool { return c.GetBucket() == bucket })
	if i < 0 {
		return nil
	}
	return s.cells[i]
}

// perCaller returns the cells of the bucket that has one for each caller, the
// same order each time.
func (s *screen) perCaller() []*grlv1.BucketView {
	var cells []*grlv1.BucketView
	for _, c := range s.cells {
		if c.GetBucket() == bucketPerCaller && c.GetCaller() != "" {
			cells = append(cells, c)
		}
	}
	slices.SortFunc(cells, func(a, b *grlv1.BucketView) int { return cmp.Compare(a.GetCaller(), b.GetCaller()) })
	return cells
}

func sum(byZone [len(zones)]window) window {
	var all window
	for _, w := range byZone {
		all.offered += w.offered
		all.admitted += w.admitted
		all.dropped += w.dropped
		all.failed += w.failed
	}
	return all
}

// ratio is the share of the offered load that was dropped.
func (w window) ratio() float64 {
	if w.offered == 0 {
		return 0
	}
	return float64(w.dropped) / float64(w.offered)
}

// rps formats a rate, "4,575".
func rps(v float64) string { return count(uint64(v + 0.5)) }

func percent(ratio float64) string { return strconv.FormatFloat(100*ratio, 'f', 0, 64) + "%" }

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// count formats a number with commas.
func count(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
