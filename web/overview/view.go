package overview

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"grl/web/page"
)

const shown = 6 // rows of each list

// view is the page, ready to print. It is filled by now and slow, which may be
// called again.
type view struct {
	Range     window
	MayCap    bool
	Elsewhere string // where the parts are that need the parent; empty: here

	// Of now.
	Tree    tree
	Notices notices
	Stats   stats
	Over    []overRow
	Caps    caps

	// Of the history, and of services.
	Load      load
	Past      *page.Past
	Headroom  headroomView
	Decisions []decision
	Latest    []latest
	// LatestProblem says that the audit cannot be read; empty: it can.
	LatestProblem string
}

// first says that nothing is limited yet, or that no host has reported yet.
func (v *view) first() bool { return v.Stats.None || v.Stats.Unheard }

// firstTitle says which of the two.
func firstTitle(limited bool) string {
	if limited {
		return "No host has reported yet"
	}
	return "Nothing is limited yet"
}

// now fills in what the controller sees at this moment.
func (v *view) now(ctx context.Context, s site, now time.Time) {
	fleet, cells := s.Backend.Fleet(), s.Backend.Cells()
	v.Tree = newTree(fleet)
	v.Notices = newNotices(fleet, now)
	v.Stats.now(fleet, cells, s.Backend.Total(), s.Backend.Counts())
	v.Over = overRows(fleet, cells)
	v.Caps = s.caps(ctx, now)
}

// slow fills in the rest.
func (v *view) slow(ctx context.Context, s site, now time.Time) {
	if v.first() {
		return
	}
	v.Past = s.Backend.Past()
	v.Stats.means(ctx, s, now)
	v.Load = s.load(ctx, v.Range, now)
	v.Headroom = newHeadroomView(v.Past, 0, shown, now)
	v.Decisions = s.decisions(ctx, v, now)
	v.Latest, v.LatestProblem = s.latest(ctx, now)
}

// part is what of the page is replaced by itself.
type part struct {
	id      string // of the element
	content templ.Component
	lively  bool // it has figures of now
}

// partsOf returns the parts of a page.
func partsOf(v *view) []part {
	if v.first() {
		return []part{{"top", topPart(v), true}}
	}
	return []part{
		{"top", topPart(v), true},
		{"load", loadPart(v), false},
		{"headroom", headroomPart(v), false},
		{"caps", capsPart(v), true},
		{"over", overPart(v), true},
		{"decisions", decisionsPart(v), false},
		{"latest", latestPart(v), false},
	}
}

// parts returns those that are not as they were shown, and remembers them. Those
// without figures of now are looked at only if all are.
func parts(ctx context.Context, v *view, all bool, shown map[string]string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		for _, p := range partsOf(v) {
			if !all && !p.lively {
				continue
			}
			var b bytes.Buffer
			if err := p.content.Render(ctx, &b); err != nil {
				return err
			}
			if b.String() == shown[p.id] {
				continue
			}
			shown[p.id] = b.String()
			if err := partial(p.id, templ.Raw(b.String())).Render(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (v *view) facts() []string { return append([]string{v.Tree.Health}, v.Tree.Facts...) }

// actions are what one may do here; nil: nothing.
func (v *view) actions() templ.Component {
	if !v.MayCap || v.first() {
		return nil
	}
	return placeCap()
}

// events is the address of the stream of the page.
func (v *view) events() string { return "/events?range=" + v.Range.Value }

// class marks a rate that is there.
func (s stat) class(name string) string {
	if !s.Any {
		return ""
	}
	return name
}

func (d decision) class() string {
	if d.Kind == "" {
		return ""
	}
	return "list__row--" + d.Kind
}

func (c headCell) class() string {
	if c.Level == 0 {
		return ""
	}
	return "load--" + strconv.Itoa(c.Level)
}
