package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
)

// reader makes buckets of the cells of one answer. It holds one bucket at a time.
type reader struct {
	query Query
	span  *span
	left  map[string]*Wanted // full name → what is not given yet
	give  func(Bucket) error
	caps  map[string][]period // service → when a cap was on it
	open  *build              // the bucket that cells come of; nil: none
	spare []lane              // of buckets that were given
}

// period is minutes [from, to) of the span.
type period struct{ from, to int }

func newReader(q Query, s *grlv1.HistorySpan, left map[string]*Wanted, give func(Bucket) error) (*reader, error) {
	span, err := newSpan(q, s)
	if err != nil {
		return nil, err
	}
	return &reader{query: q, span: span, left: left, give: give, caps: make(map[string][]period)}, nil
}

// take takes in a cell.
func (r *reader) take(c *grlv1.CellHistory) error {
	minutes := r.span.hours * perHour
	switch {
	case c == nil:
		return errors.New("a message has no cell")
	case max(len(c.Offered), len(c.Dropped), len(c.HighestSecond), len(c.CandidateDropped)) > minutes:
		return fmt.Errorf("%s has more than the %d minutes of the span", c.Bucket, minutes)
	case len(c.Zones) > r.span.zones:
		return fmt.Errorf("%s has rows of %d zones, of %d in the span", c.Bucket, len(c.Zones), r.span.zones)
	case c.Cap:
		return r.takeCap(c)
	}
	if r.open == nil || r.open.wanted.Bucket.FullName() != c.Bucket {
		if err := r.close(); err != nil {
			return err
		}
		wanted := r.left[c.Bucket]
		if wanted == nil {
			return fmt.Errorf("%s was not asked for, or came twice", c.Bucket)
		}
		r.open = newBuild(wanted, r.span, r.spare)
	}
	r.open.add(c)
	return nil
}

// takeCap notes when a cap was active: from its first request to its last.
func (r *reader) takeCap(c *grlv1.CellHistory) error {
	if r.open != nil {
		return fmt.Errorf("the cap %s comes after buckets", c.Bucket)
	}
	some := func(n uint64) bool { return n > 0 }
	first := slices.IndexFunc(c.Offered, some)
	if first < 0 {
		return nil
	}
	last := len(c.Offered) - 1
	for !some(c.Offered[last]) {
		last--
	}
	service := c.Bucket[:strings.LastIndexByte(c.Bucket, '/')+1]
	r.caps[service] = append(r.caps[service], period{first, last + 1})
	return nil
}

// close gives the open bucket away.
func (r *reader) close() error {
	if r.open == nil {
		return nil
	}
	b := r.open
	r.open = nil
	bucket := b.bucket(r.query, r.caps[b.wanted.Bucket.Service+"/"])
	r.spare = append(b.spare, b.used...)
	return r.give(bucket)
}

// finish gives the open bucket away, and those that have no cell.
func (r *reader) finish() error {
	if err := r.close(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.left)) {
		if err := r.give(r.left[name].none(r.query, time.Minute)); err != nil {
			return err
		}
	}
	return nil
}
