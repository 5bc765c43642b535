package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/policy"
)

// tally counts the steps of a time by what is wrong with them. Steps that are
// ignored are in steps and ignored alone, so that a person can say of broken
// history that it is none.
type tally struct {
	steps, ignored int
	known          int // has a load that is to be believed
	taught         int // of these, teach
	positive       int // of these, are above 0
	capped, drops  int // of known
	// lacks has, by word, the steps that are not known.
	lacks map[string]int
	// faults has, by word, the steps with rows that are broken, whether another
	// row made them good or not.
	faults map[string]int
}

// tally counts the steps from one on.
func (l *lane) tally(from int) tally {
	t := tally{lacks: make(map[string]int), faults: make(map[string]int)}
	for i := from; i < len(l.rps); i++ {
		t.steps++
		if l.marks[i]&ignored != 0 {
			t.ignored++
			continue
		}
		t.fault(l.marks[i])
		if !l.known(i) {
			t.lacks[l.lack(i)]++
			continue
		}
		t.known++
		switch {
		case l.marks[i]&ownDrops != 0:
			t.drops++
		case l.marks[i]&capped != 0:
			t.capped++
		default:
			t.taught++
			if l.rps[i] > 0 {
				t.positive++
			}
		}
	}
	return t
}

func (t *tally) fault(m mark) {
	if m&(notNumber|negative|duplicated|disordered|damaged) == 0 {
		return
	}
	for _, f := range []struct {
		mark mark
		word string
	}{{notNumber, nan}, {negative, below}, {duplicated, twice}, {disordered, outOfOrder}, {damaged, unreadable}} {
		if m&f.mark != 0 {
			t.faults[f.word]++
		}
	}
}

// lack returns why step i is not known.
func (l *lane) lack(i int) string {
	switch m := l.marks[i]; {
	case m&silent != 0:
		return partial
	case m&vanished != 0:
		return zero
	case m&damaged != 0:
		return unreadable
	case m&notNumber != 0:
		return nan
	case m&negative != 0:
		return below
	default:
		return lowCoverage
	}
}

// refused returns why too little is left of a time to compute anything from; "":
// there is enough.
func (t *tally) refused() string {
	expected := t.steps - t.ignored
	if float64(t.known) < leastCoverage*float64(expected) {
		words := slices.Sorted(maps.Keys(t.lacks))
		return slices.MaxFunc(words, func(a, b string) int { return cmp.Compare(t.lacks[a], t.lacks[b]) })
	}
	if float64(t.taught) < leastTaught*float64(t.steps) {
		if t.drops > t.ignored+t.capped {
			return dropped
		}
		return incident
	}
	return ""
}

// useless returns why what teaches says nothing; "": it does.
func (t *tally) useless() string {
	switch {
	case t.taught < leastSteps:
		return shortHistory
	case t.positive == 0:
		return zero
	default:
		return ""
	}
}

// noLower returns why no limit may be lowered; "": it may. What is missing may
// have been the peak, so that a single step is enough.
func (t *tally) noLower(warning string, young, lateDrops bool) string {
	for _, word := range []string{below, nan, outOfOrder, twice, unreadable} {
		if t.faults[word] > 0 {
			return word
		}
	}
	switch {
	case lateDrops:
		return dropped
	case t.lacks[zero] > 0:
		return zero
	case warning != "" || t.lacks[partial] > 0 || t.lacks[lowCoverage] > 0:
		return partial
	case young:
		return shortHistory
	default:
		return ""
	}
}

// notes says what was left out and why.
func (t *tally) notes(c claim, s policy.Series, young bool) []string {
	var notes []string
	add := func(n int, text string) {
		if n > 0 {
			notes = append(notes, policy.Count(n)+" of "+policy.Count(t.steps)+" steps "+text)
		}
	}
	if t.taught < t.steps {
		add(t.taught, "of "+shortly(s.Step)+" teach")
	}
	add(t.lacks[lowCoverage], "are missing")
	add(t.lacks[partial], "lack a zone or region that recorded nothing")
	add(t.lacks[zero], "are 0 where requests were expected")
	add(t.faults[nan], "have a value that is no number")
	add(t.faults[below], "have a negative value")
	add(t.faults[twice], "came twice")
	add(t.faults[outOfOrder], "came after later ones")
	add(t.faults[unreadable], "are damaged")
	add(t.drops, "do not teach: grl dropped some of it")
	add(t.capped, "do not teach: a cap was on the service")
	add(t.ignored, "do not teach"+reasons(c.ignore))
	if young {
		notes = append(notes, "there is history since "+s.Start.UTC().Format(time.DateTime)+" UTC only")
	}
	if c.warning != "" {
		notes = append(notes, "the source warns: "+c.warning)
	}
	return notes
}

// reasons names what is ignored.
func reasons(ignore []policy.Ignore) string {
	var all []string
	for _, ig := range ignore {
		if ig.Reason != "" && !slices.Contains(all, ig.Reason) {
			all = append(all, ig.Reason)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// shortly writes a step without the units that are 0: 5m, 1h.
func shortly(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}
