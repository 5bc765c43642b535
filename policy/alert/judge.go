package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of the rules.
const (
	overShare   = 0.01 // of what a bucket is offered
	hurtShare   = 0.01 // of a day
	staleAfter  = 5 * time.Second
	lostAfter   = 10 * time.Second
	endingAhead = 10 * time.Minute
)

// judge returns what holds now, by rule. An alert has no state yet.
func judge(now time.Time, in Input, zones map[string]zone) (found [count][]Alert) {
	add := func(rule Rule, subject string, worst float64, format string, args ...any) {
		found[rule] = append(found[rule], Alert{Key: Key{rule, subject}, Text: fmt.Sprintf(format, args...), worst: worst})
	}
	for _, b := range in.Buckets {
		if share := b.Dropped / b.Offered; b.Offered > 0 && share > overShare {
			add(OverLimit, b.Name, share, "%s drops %s", b.Name, percent(share))
		}
	}
	for _, s := range worstShadows(in.Shadows) {
		what := ""
		if s.Candidate {
			what = "the candidate of "
		}
		add(ShadowWouldHurt, s.Bucket, s.Share, "%s%s would have dropped %s of %s", what, s.Bucket, percent(s.Share), s.Day.UTC().Format("Mon 2 Jan"))
	}
	for _, z := range in.Zones {
		if age := max(z.DirectiveAge, z.Silent); age > staleAfter {
			add(DirectiveStale, z.Name, age.Seconds(), "zone %s, %s old", z.Name, span(age))
		}
	}
	for name, z := range zones {
		if lost := z.lost(now); lost > 0 {
			add(HostLost, name, float64(lost), "%s of %s %s silent", plural(lost, "host"), name, isAre(lost))
		}
	}
	for _, c := range in.Caps {
		if left := c.Ends.Sub(now); left > 0 && left < endingAhead {
			add(CapEnding, c.ID, -left.Seconds(), "%s ends in %s", c.Name, span(left))
		}
	}
	if in.Run != nil {
		if text := in.Run.text(); text != "" {
			add(RLCRefused, "", 0, "run %d %s", in.Run.ID, text)
		}
	}
	switch {
	case in.Audit.Broken > 0:
		add(AuditBroken, "", 0, "entry %d: %s", in.Audit.Broken, in.Audit.Reason)
	case in.Audit.Lost != "":
		add(AuditBroken, "", 0, "entries cannot be read: %s", in.Audit.Lost)
	}
	return found
}

// worstShadows returns those that would hurt, the worst one of each bucket.
func worstShadows(all []Shadow) map[string]Shadow {
	worst := make(map[string]Shadow)
	for _, s := range all {
		if s.Share > hurtShare && s.Share > worst[s.Bucket].Share {
			worst[s.Bucket] = s
		}
	}
	return worst
}

// text says what is wrong with a run, "" if nothing is.
func (r *Run) text() string {
	if r.Failed != "" {
		return "failed: " + r.Failed
	}
	var parts []string
	if r.Refused > 0 {
		parts = append(parts, "could not judge "+plural(int(r.Refused), "bucket"))
	}
	if r.Broken > 0 {
		parts = append(parts, "failed at "+plural(int(r.Broken), "bucket"))
	}
	return strings.Join(parts, " and ")
}

// percent writes a share in (0, 1] with one decimal, two below 1 %.
func percent(share float64) string {
	p := share * 100
	switch {
	case p >= 100:
		return "100%"
	case p >= 99.95:
		return ">99.9%"
	case p < 0.995:
		return strconv.FormatFloat(p, 'f', 2, 64) + "%"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + "%"
}

// span writes a length of time in its largest unit: 12 s, 9 min, 3 h.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
