// Package alert has the rules that come with grl for what needs a person: what
// holds now, for how long it did, and what of it fires. It is pure; what is known
// at a moment is an argument.
package alert

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Rule is one of the rules.
type Rule uint8

// The rules, in the order in which they are listed.
const (
	OverLimit       Rule = iota // a bucket drops more than 1 %, for 5 minutes
	HostLost                    // hosts that were there are silent for 10 s
	DirectiveStale              // a zone took no directive for 5 s
	CapEnding                   // a cap ends within 10 minutes
	ShadowWouldHurt             // a limit that is not enforced would have dropped more than 1 % of a day
	RLCRefused                  // the last RLC run failed, or left a limit as it was since it could not judge it
	AuditBroken                 // the chain of the audit does not hold, or cannot be read

	count
)

var words = [count]string{"over_limit", "host_lost", "directive_stale", "cap_ending", "shadow_would_hurt", "rlc_refused", "audit_broken"}

// String returns the rule as labels, records and the audit name it: "over_limit".
func (r Rule) String() string {
	if r < count {
		return words[r]
	}
	return "unknown"
}

// Rules returns all rules, in their order.
func Rules() []Rule {
	all := make([]Rule, count)
	for i := range all {
		all[i] = Rule(i)
	}
	return all
}

// ParseRule returns the rule of a word of String, false if there is none.
func ParseRule(word string) (Rule, bool) {
	i := slices.Index(words[:], word)
	return Rule(max(i, 0)), i >= 0
}

const (
	// Kept is how long a rule must be quiet before an alert that fired ends, so
	// that a figure about its bound is one alert, not many.
	Kept = time.Minute
	// MaxSubjects is how many subjects a rule follows: what began first, of what
	// began together the worst. There is an end to it, since names come from
	// outside.
	MaxSubjects = 1000
)

// wait is how long a rule must hold before it fires. That of lost hosts and
// stale directives is in what is judged: an age.
var wait = [count]time.Duration{OverLimit: 5 * time.Minute}

// State is how far an alert is.
type State uint8

// Quiet is the zero value.
const (
	Quiet   State = iota
	Pending       // holds, but not for long enough yet
	Firing
)

// Key names an alert.
type Key struct {
	Rule    Rule
	Subject string // a bucket, a zone, the id of a cap; "": there is but one
}

// Alert is what a rule says of a subject.
type Alert struct {
	Key
	State State
	// Text says what holds, or held last, in a sentence with its figures and
	// without a full stop.
	Text string
	// Since is when it began to hold.
	Since time.Time

	holds time.Time // when it held last
	worst float64
}

// Memory is what Step remembers. The zero value knows nothing. It is not
// changed once it was returned.
type Memory struct {
	alerts map[Key]Alert // that are not quiet
	last   [count]time.Time
	zones  map[string]zone
}

// Step judges what is known at a moment after that of the memory before, and
// returns the memory for the next one. An alert that fires ends once its rule did
// not hold for Kept; one that is pending ends at once.
func Step(now time.Time, in Input, before Memory) Memory {
	next := Memory{alerts: make(map[Key]Alert, len(before.alerts)), last: before.last}
	next.zones = countHosts(now, in.Zones, before.zones)
	for rule, found := range judge(now, in, next.zones) {
		for key, a := range follow(now, Rule(rule), found, before.alerts) {
			if a.State == Firing {
				next.last[key.Rule] = now
			}
			next.alerts[key] = a
		}
	}
	return next
}

// follow returns the alerts of one rule after what was found now.
func follow(now time.Time, rule Rule, found []Alert, before map[Key]Alert) map[Key]Alert {
	alerts := make(map[Key]Alert)
	for key, a := range before {
		if key.Rule == rule && a.State == Firing && now.Sub(a.holds) < Kept {
			alerts[key] = a
		}
	}
	// What is followed stays followed, then the worst.
	slices.SortStableFunc(found, func(a, b Alert) int {
		_, oldA := before[a.Key]
		_, oldB := before[b.Key]
		return cmp.Or(order(oldA, oldB), cmp.Compare(b.worst, a.worst), cmp.Compare(a.Subject, b.Subject))
	})
	for _, a := range found {
		old, is := before[a.Key]
		if _, kept := alerts[a.Key]; !kept && len(alerts) >= MaxSubjects {
			continue
		}
		a.Since, a.holds = now, now
		if is {
			a.Since = old.Since
		}
		if d := now.Sub(a.Since); rule == OverLimit && d > 0 {
			a.Text += " for " + span(d)
		}
		a.State = Pending
		if old.State == Firing || now.Sub(a.Since) >= wait[rule] {
			a.State = Firing
		}
		alerts[a.Key] = a
	}
	return alerts
}

// order puts what is so first.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// List returns the alerts that fire or are pending, what fires first, and one for
// each rule that is quiet, of which Since is when it fired last, zero: never. They
// are in the order of the rules, then of what is since longest.
func (m Memory) List() []Alert {
	all := slices.Collect(maps.Values(m.alerts))
	loud := make(map[Rule]bool)
	for _, a := range all {
		loud[a.Rule] = true
	}
	for _, r := range Rules() {
		if !loud[r] {
			all = append(all, Alert{Key: Key{Rule: r}, Since: m.last[r]})
		}
	}
	slices.SortFunc(all, func(a, b Alert) int {
		return cmp.Or(
			cmp.Compare(b.State, a.State), cmp.Compare(a.Rule, b.Rule), a.Since.Compare(b.Since),
			cmp.Compare(b.worst, a.worst), cmp.Compare(a.Subject, b.Subject),
		)
	})
	return all
}

// Firing returns the alerts that fire, in the order of List.
func (m Memory) Firing() []Alert {
	return slices.DeleteFunc(m.List(), func(a Alert) bool { return a.State != Firing })
}
