package overview

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"grl/web/format"
	"grl/web/page"
)

const headroomRows = 50 // of a page of all

// headroomView says how near cells came to their limits, by day.
type headroomView struct {
	Days  []headDay
	Rows  []headRow
	Empty string // why there are none
	Pager page.Pager
	Note  string // what is not among them; empty: nothing
}

// headDay is a column.
type headDay struct {
	Name string
	Wide bool // not on a phone
}

// headRow is a cell, ready to print.
type headRow struct {
	Label page.Label
	Days  []headCell
}

// headCell is the highest second of one day in per cent of the limit.
type headCell struct {
	Text  string
	Level int  // 0 to 3, how near
	Over  bool // above the limit
	Known bool
	Wide  bool
}

// levels are the shares of the limit from which a day is marked, from 1 on.
var levels = []float64{0.845, 0.945, 1.005}

func newHeadroomView(past *page.Past, from, to int, now time.Time) headroomView {
	v, known := headroomView{}, knownOf(past)
	for i := range known[min(from, len(known)):min(to, len(known))] {
		v.Rows = append(v.Rows, newHeadRow(&known[from+i]))
	}
	at := past.At
	if at.IsZero() {
		at = now
	}
	for i := range 7 {
		v.Days = append(v.Days, headDay{Name: at.UTC().AddDate(0, 0, i-6).Format("Mon"), Wide: i < 3})
	}
	switch {
	case past.At.IsZero() && past.Read < 1:
		v.Empty = fmt.Sprintf("The history is being read: %s so far.", format.Share(past.Read))
	case len(known) == 0:
		v.Empty = "No enforced bucket has history yet under a limit."
	}
	if past.LeftOut > 0 {
		v.Note = format.Plural(past.LeftOut, "cell") + " beyond what is kept are not here"
	}
	return v
}

// knownOf returns the cells of which a day is known: the others are the last.
func knownOf(past *page.Past) []page.Headroom {
	for i := range past.Headroom {
		if !slices.ContainsFunc(past.Headroom[i].Days[:], func(share float64) bool { return !math.IsNaN(share) }) {
			return past.Headroom[:i]
		}
	}
	return past.Headroom
}

func newHeadRow(h *page.Headroom) headRow {
	r := headRow{Label: page.NewLabel(h.Cell.Bucket, h.Cell.Instance, h.Cell.Caller, "")}
	if h.Cell.Instance != "" {
		r.Label.Name += " (" + format.Printable(h.Cell.Instance) + ")"
	}
	for i, share := range h.Days {
		c := headCell{Wide: i < 3, Known: !math.IsNaN(share)}
		if c.Known {
			c.Text = strconv.Itoa(int(math.Round(100 * min(share, 1e6))))
			for _, from := range levels {
				if share >= from {
					c.Level++
				}
			}
			c.Over = c.Level == len(levels)
		}
		r.Days = append(r.Days, c)
	}
	return r
}

// headroom serves the page of all.
func (s site) headroom(w http.ResponseWriter, r *http.Request) {
	past := s.Backend.Past()
	number, _ := strconv.Atoi(r.URL.Query().Get("page")) // what is no number is the first page
	p, from, to := page.NewPager(len(knownOf(past)), headroomRows, number, func(n int) string { return "/headroom?page=" + strconv.Itoa(n) })
	v := newHeadroomView(past, from, to, time.Now())
	v.Pager = p
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, headroomTable(v, true))
		return
	}
	out := s.Page(r, "Headroom", "/")
	out.Crumbs = []page.Crumb{{Name: "Overview", Path: "/"}, {Name: "Headroom"}}
	s.Render(w, r, http.StatusOK, headroomPage(out, v, r.URL.RequestURI()))
}
