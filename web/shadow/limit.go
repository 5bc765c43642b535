package shadow

import (
	"cmp"
	"strings"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/web/page"
)

// limit is one limit that is not enforced: that of a bucket in shadow, or a
// candidate. What its cells would have done is one.
type limit struct {
	name          string // full name of the bucket
	service       string
	owner, match  string
	candidate     bool
	block         bool
	perCaller     bool
	rps, today    float64 // that is judged, and that is enforced beside
	kind          verdict.Kind
	worst         *page.Evidence // of the cell that would be hurt most; nil: nothing was counted
	cells         int            // with evidence
	offered, lost float64        // requests in the time judged, and virtual drops of them
	hitShare      float64        // of the virtual drops
	hit           string         // caller; "": not known
	hitLost       float64
}

// collect returns the limits that are not enforced, in no order.
func collect(cells []page.Cell, past *page.Past) []limit {
	var limits []limit
	at := make(map[string]int) // bucket → place
	for i := range cells {
		c := &cells[i]
		if c.Cap != "" || c.Behavior == limiter.Deny && c.CandidateRPS <= 0 {
			continue
		}
		name := c.Bucket()
		if j, ok := at[name]; ok {
			limits[j].perCaller = limits[j].perCaller || c.Caller != ""
			continue
		}
		at[name] = len(limits)
		l := limit{name: name, service: c.Service, owner: c.Owner, match: c.Match, block: c.Block, rps: c.LimitRPS, perCaller: c.Caller != ""}
		if c.Behavior == limiter.Deny {
			l.candidate, l.rps, l.today = true, c.CandidateRPS, c.LimitRPS
		}
		limits = append(limits, l)
	}
	for i := range past.Evidence {
		e := &past.Evidence[i]
		if j, ok := at[e.Cell.Bucket]; ok && e.Candidate == limits[j].candidate {
			limits[j].add(e)
		}
	}
	for i := range limits {
		limits[i].judge()
	}
	return limits
}

// add takes in a cell.
func (l *limit) add(e *page.Evidence) {
	l.cells++
	l.perCaller = l.perCaller || e.Cell.Caller != ""
	l.offered += e.Offered
	l.lost += e.Dropped
	if l.worst == nil || compareWorse(e, l.worst) < 0 {
		l.worst = e
	}
	if e.Cell.Caller != "" && e.Dropped > l.hitLost {
		l.hit, l.hitLost = e.Cell.Caller, e.Dropped
	}
}

// judge says of the limit what is said of its worst cell.
func (l *limit) judge() {
	if l.worst == nil {
		return
	}
	l.kind, l.rps = l.worst.Kind, l.worst.LimitRPS
	switch {
	case l.hit != "":
		l.hitShare = l.hitLost / l.lost
	default:
		l.hit, l.hitShare = l.worst.HitCaller, l.worst.HitShare
	}
}

// compareWorse orders evidence of one bucket: what would hurt most first.
func compareWorse(a, b *page.Evidence) int {
	return cmp.Or(
		cmp.Compare(severity[b.Kind], severity[a.Kind]),
		cmp.Compare(b.WorstShare, a.WorstShare),
		cmp.Compare(b.Highest, a.Highest),
		strings.Compare(a.Cell.Instance, b.Cell.Instance),
		strings.Compare(a.Cell.Caller, b.Cell.Caller),
	)
}

// severity orders verdicts: that somebody would be hurt outweighs all.
var severity = map[verdict.Kind]int{verdict.WouldHurt: 2, verdict.TooLittle: 1, verdict.Safe: 0}

// words are what the verdict is put into words with.
func (l *limit) words() verdict.Words {
	return verdict.Words{LimitRPS: l.rps, Candidate: l.candidate, EnforcedRPS: l.today, Caller: l.hit}
}

// pick returns the limits of the buckets named, in their order.
func pick(limits []limit, names []string) []limit {
	at := make(map[string]int, len(limits))
	for i := range limits {
		at[limits[i].name] = i
	}
	var picked []limit
	for _, name := range names {
		if i, ok := at[name]; ok {
			picked = append(picked, limits[i])
			delete(at, name) // once
		}
	}
	return picked
}
