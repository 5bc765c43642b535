package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/web/format"
	"grl/web/page"
)

const shownErrorText = 4000 // bytes of a load error that are shown

// tree says in a few words how the tree is.
type tree struct {
	Health string   // "Tree healthy", "Tree healthy except zone eu-2"
	Facts  []string // "29 of 30 zones"
}

func newTree(f page.Fleet) tree {
	zones := make(map[string]bool)
	for _, z := range f.SilentZones {
		zones[z] = true
	}
	controllers := 1
	var slowest time.Duration
	var behind, refused int
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if n.Zone != "" {
			zones[n.Zone] = true
		}
		if n.Role == "controller" {
			controllers++
		}
		switch {
		case n.RefusedRevision > 0:
			refused++
		case n.Revision < f.Revision:
			behind++
		}
		if !slices.Contains(f.SilentZones, n.Zone) {
			slowest = max(slowest, n.DirectiveAge)
		}
	}
	t := tree{Health: health(f, refused), Facts: []string{
		format.Plural(controllers, "controller"),
		format.Count(len(zones)-len(f.SilentZones)) + " of " + format.Plural(len(zones), "zone"),
		format.Plural(f.Hosts(), "host"),
	}}
	if len(f.SilentZones) == 0 {
		t.Facts[1] = format.Plural(len(zones), "zone")
	}
	if slowest > 0 {
		t.Facts = append(t.Facts, "slowest directive "+format.Age(slowest))
	}
	if f.Revision > 0 {
		t.Facts = append(t.Facts, fmt.Sprintf("r%d", f.Revision))
	}
	if r := f.Rollout; r != nil && !r.Stopped {
		t.Facts = append(t.Facts, fmt.Sprintf("r%d is in %d of %s", r.Revision, len(r.Reached), format.Plural(len(r.Reached)+len(r.Waiting), "zone")))
	}
	if behind > 0 {
		t.Facts = append(t.Facts, format.Plural(behind, "node")+" behind")
	}
	return t
}

func health(f page.Fleet, refused int) string {
	switch {
	case len(f.SilentZones) > 0:
		return "Tree healthy except " + page.ZoneNames(f.SilentZones)
	case refused > 0:
		return "Tree healthy, but " + format.Plural(refused, "node") + " refused the configuration"
	case len(f.Nodes) == 0:
		return "No node has reported yet"
	}
	return "Tree healthy"
}

// notices are what is wrong, above the numbers.
type notices struct {
	Load *loadError // nil: the limits directory was accepted
	All  []page.Notice
}

func newNotices(f page.Fleet, now time.Time) notices {
	v := notices{Load: newLoadError(f)}
	add := func(kind, title, text string) {
		v.All = append(v.All, page.Notice{Kind: kind, Title: title, Text: text})
	}
	if f.AllDisabled {
		add("warn", "Dropping is disabled everywhere", "All requests are admitted; what limits would drop is counted. The page of caps, or grl enable --all, ends that.")
	} else if n := len(f.Disabled); n > 0 {
		add("warn", "Dropping is disabled for "+page.Listed(f.Disabled), "Their requests are all admitted; what limits would drop is counted. The page of caps, or grl enable, ends that.")
	}
	if f.WarmingUp {
		add("warn", "Warming up: not every node has reported yet", "Rates may still be too low. Hosts go on with the drop ratios they have.")
	}
	if f.Alone {
		add("warn", "The parent is silent", "This controller decides its part of global limits alone.")
	}
	v.All = append(v.All, f.Silence().Notices(now)...)
	return v
}

// loadError is a refused limits directory.
type loadError struct {
	Title string
	Text  string // lines
	More  string // what was cut off; empty: nothing
}

func newLoadError(f page.Fleet) *loadError {
	if f.LoadError == "" {
		return nil
	}
	v := &loadError{Title: "The limits directory was refused: no limit is in force", Text: strings.TrimSpace(f.LoadError)}
	if f.Revision > 0 {
		v.Title = fmt.Sprintf("The limits directory was refused: r%d stays active", f.Revision)
	}
	if len(v.Text) > shownErrorText {
		cut := shownErrorText
		if end := strings.LastIndexByte(v.Text[:cut], '\n'); end > 0 {
			cut = end
		}
		more := strings.Count(strings.Trim(v.Text[cut:], "\n"), "\n") + 1
		v.Text, v.More = v.Text[:cut], fmt.Sprintf("%s more lines are in the log of the controller.", format.Count(more))
	}
	lines := strings.Split(v.Text, "\n")
	for i, l := range lines {
		lines[i] = format.Printable(l)
	}
	v.Text = strings.Join(lines, "\n")
	return v
}
