package desk

import (
	"context"
	"fmt"
	"strings"

	"grl/limiter"
	"grl/store/ledger"
)

// RollbackRequest asks for a revision that equals an older one.
type RollbackRequest struct {
	By
	Revision uint64
	Force    bool
	Reason   string // required
	DryRun   bool
}

// Rollback makes a revision that equals an older one, at once in all zones. It
// ends a rollout; back to what the zones hold that the rollout has not reached,
// no guard rail is in its way. Errors are those of Apply, and ErrNotFound.
func (d *Desk) Rollback(ctx context.Context, r RollbackRequest) (Outcome, error) {
	if r.Reason == "" {
		return Outcome{}, invalid("reason", "is empty")
	}
	return d.change(ctx, proposal{
		by: r.By, action: "rollback", reason: r.Reason, force: r.Force, dryRun: r.DryRun, atOnce: true, endsRollout: true,
		draft: func(ctx context.Context, head *snapshot, rollout ledger.Rollout) (draft, error) {
			if r.Revision > head.revision.Number {
				return draft{}, fmt.Errorf("revision r%d: %w", r.Revision, ErrNotFound)
			}
			old, err := d.at(ctx, ledger.Revision{Number: r.Revision})
			if err != nil {
				return draft{}, err
			}
			return draft{
				next:    &snapshot{documents: old.documents},
				sources: noSources,
				noRails: underWay(rollout) && r.Revision == rollout.From,
			}, nil
		},
	})
}

// underWay reports whether a rollout has not come to its end. One that stopped by
// itself has: the controller went back to the revision before.
func underWay(r ledger.Rollout) bool { return r.State == ledger.RolloutRunning }

// PromoteRequest asks for a bucket to be enforced as it was tried.
type PromoteRequest struct {
	By
	Bucket string // full name
	// Base is the revision that was looked at: a bucket that was changed since is a
	// conflict. nil: it is promoted as it is.
	Base   *uint64
	Force  bool
	Reason string
	DryRun bool
}

// Promote enforces a bucket that is in shadow, or makes the candidate of an
// enforced one its limit. Errors are those of Apply, and ErrNotFound.
func (d *Desk) Promote(ctx context.Context, r PromoteRequest) (Outcome, error) {
	service, name, ok := strings.Cut(r.Bucket, "/")
	if !ok || service == "" || name == "" {
		return Outcome{}, invalid("bucket", "%q is no full name: write service/bucket", clip(r.Bucket))
	}
	return d.change(ctx, proposal{
		by: r.By, action: "promote", reason: r.Reason, force: r.Force, dryRun: r.DryRun,
		draft: func(ctx context.Context, head *snapshot, _ ledger.Rollout) (draft, error) {
			if err := d.unchanged(ctx, r, service, head); err != nil {
				return draft{}, err
			}
			doc, err := promoted(head.documents[service], r.Bucket)
			if err != nil {
				return draft{}, err
			}
			return draft{next: head.with(map[string]*document{service: doc}), sources: noSources}, nil
		},
	})
}

// unchanged returns a *ConflictError if the bucket is not what it was at the
// base.
func (d *Desk) unchanged(ctx context.Context, r PromoteRequest, service string, head *snapshot) error {
	if r.Base == nil {
		return nil
	}
	if err := checkBase(*r.Base, head); err != nil {
		return err
	}
	bases := &bases{desk: d, head: head, explicit: r.Base, read: map[uint64]map[string]ledger.Document{}}
	base, err := bases.document(ctx, service)
	if err != nil {
		return err
	}
	was, is := itemsOf(base)[r.Bucket], itemsOf(head.documents[service])[r.Bucket]
	if was == is {
		return nil
	}
	conflict := Conflict{Bucket: r.Bucket, Base: *r.Base, Revision: head.revision, BaseText: was, TheirText: is}
	if ours, err := promoted(base, r.Bucket); err == nil {
		conflict.OurText = itemsOf(ours)[r.Bucket]
	}
	return &ConflictError{d.attribute(ctx, []Conflict{conflict})}
}

// promoted returns a service with one bucket promoted.
func promoted(doc *document, bucket string) (*document, error) {
	if doc != nil {
		s := *doc.service
		s.Buckets = append([]limiter.Bucket(nil), s.Buckets...)
		for i := range s.Buckets {
			b := &s.Buckets[i]
			switch {
			case b.FullName() != bucket:
				continue
			case b.Behavior == limiter.Allow:
				b.Behavior = limiter.Deny
			case b.CandidateRPS > 0:
				b.LimitRPS, b.CandidateRPS, b.Hourly = b.CandidateRPS, 0, nil // it was judged at all hours
				if !b.HasHours() {
					b.TimeZone = ""
				}
			default:
				return nil, invalid("bucket", "%s is enforced and has no candidate: there is nothing to promote", bucket)
			}
			return newDocument(s), nil
		}
	}
	return nil, fmt.Errorf("bucket %q: %w", clip(bucket), ErrNotFound)
}

// clip shortens what is repeated in an error.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
