package changes

import (
	"context"
	"time"

	grlv1 "grl/proto/grl/v1"
)

const (
	// pageRows is how many entries a page has, readAtOnce how many are asked for
	// at once, and mostRead how many are looked through for a page: the next one
	// looks further.
	pageRows   = 50
	readAtOnce = 100
	mostRead   = 3000
)

// found is what a query selects.
type found struct {
	Entries []*grlv1.AuditEntry // the newest first
	Newest  uint64              // entry of all that were looked through; 0: none was
	Next    uint64              // to look further: only entries below; 0: that is all
	Read    int                 // entries that were looked through
}

// find looks for the newest entries that q selects, for so many at most.
func (s site) find(ctx context.Context, q query, most int) (found, error) {
	f, begin := found{Next: q.Before}, q.begin(time.Now())
	for f.Read < mostRead {
		answer, err := s.Services.Audit.ListAudit(ctx, &grlv1.ListAuditRequest{Before: f.Next, PageSize: readAtOnce})
		if err != nil {
			return found{}, err
		}
		for _, e := range answer.GetEntries() {
			f.Newest = max(f.Newest, e.GetNumber())
			if e.GetNumber() <= q.After || time.UnixMilli(e.GetAtMs()).Before(begin) {
				f.Next = 0
				return f, nil
			}
			if q.selects(e) {
				if len(f.Entries) == most {
					f.Next = f.Entries[most-1].GetNumber()
					return f, nil
				}
				f.Entries = append(f.Entries, e)
			}
			f.Read++
			f.Next = e.GetNumber()
		}
		if len(answer.GetEntries()) < readAtOnce {
			f.Next = 0
			return f, nil
		}
	}
	return f, nil
}

// entry returns one entry, nil if there is none of the number.
func (s site) entry(ctx context.Context, number uint64) (*grlv1.AuditEntry, error) {
	if number == 0 {
		return nil, nil
	}
	answer, err := s.Services.Audit.ListAudit(ctx, &grlv1.ListAuditRequest{Before: number + 1, PageSize: 1})
	if err != nil {
		return nil, err
	}
	for _, e := range answer.GetEntries() {
		if e.GetNumber() == number {
			return e, nil
		}
	}
	return nil, nil
}
