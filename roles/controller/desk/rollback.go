package desk

import (
	"context"
	"fmt"
	"strings"

	"grl/limiter"
	"grl/store/ledger"
)

// RollbackRequest asks for a revision that equals an older one, or for one
// without what an older one changed.
type RollbackRequest struct {
	By
	Revision uint64
	// Alone undoes what Revision changed, and that alone.
	Alone  bool
	Force  bool
	Reason string // required
	DryRun bool
}

// Rollback makes a revision that equals an older one, at once in all zones. It
// ends a rollout; back to what the zones hold that the rollout has not reached,
// no guard rail is in its way. One that undoes a revision alone leaves what was
// changed since in other buckets, and runs into a conflict in the same ones; the
// only rollout that it ends is that of the revision. Errors are those of Apply, and
// ErrNotFound.
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
			if r.Alone {
				return d.without(ctx, r.Revision, head, rollout)
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

// without returns the head without what a revision changed: what it changed is
// merged the other way round.
func (d *Desk) without(ctx context.Context, number uint64, head *snapshot, rollout ledger.Rollout) (draft, error) {
	if number == 0 {
		return draft{}, invalid("revision", "0 is none that could be undone")
	}
	if underWay(rollout) && rollout.Revision != number {
		return draft{}, &RolloutError{rollout} // it would be in all zones at once
	}
	made, err := d.at(ctx, ledger.Revision{Number: number})
	if err != nil {
		return draft{}, err
	}
	was, err := d.at(ctx, ledger.Revision{Number: number - 1})
	if err != nil {
		return draft{}, err
	}
	changed := make(map[string]*document)
	var clashes []Conflict
	for _, service := range was.differences(made) {
		m := merging{service: service, base: made.documents[service], head: head.documents[service], ours: was.documents[service]}
		got, err := m.merge()
		if err != nil {
			return draft{}, err
		}
		changed[service] = got.document
		clashes = append(clashes, m.conflicts(number, head.revision, got.clashes)...)
	}
	if len(clashes) > 0 {
		return draft{}, &ConflictError{d.attribute(ctx, clashes)}
	}
	return draft{next: head.with(changed), sources: noSources, noRails: underWay(rollout)}, nil
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
