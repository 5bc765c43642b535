package api

import (
	"context"
	"maps"
	"sync"

	grlv1 "grl/proto/grl/v1"
	"grl/store/ledger"
)

// later remembers what the newest runs would have of each bucket, so that a
// proposal which a later run makes otherwise is told from one that still holds.
type later struct {
	mu   sync.Mutex        // guards all below
	seen map[uint64]bool   // runs
	of   map[string]wanted // bucket → what the newest of them would have
}

// wanted is what a run would have of a bucket.
type wanted struct{ run, wish uint64 }

// since returns what the runs after one would have of each bucket, as far as
// they are done, and were not dry.
func (o *Options) since(ctx context.Context, l *later, id uint64) (map[string]wanted, error) {
	runs, err := o.Ledger.Runs(ctx, 0, ledger.MaxRuns)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.ID <= id || r.State != ledger.RunDone || r.DryRun || l.saw(r.ID) {
			continue
		}
		f, err := o.find(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		l.take(f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.of), nil
}

func (l *later) saw(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[id]
}

// take remembers what a run found, where it is newer.
func (l *later) take(f *findings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen, l.of = make(map[uint64]bool), make(map[string]wanted)
	}
	l.seen[f.run.ID] = true
	for _, m := range f.results {
		switch m.GetOutcome() {
		case grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED,
			grlv1.RunOutcome_RUN_OUTCOME_APPLIED, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED:
			if f.run.ID > l.of[m.GetBucket()].run {
				l.of[m.GetBucket()] = wanted{f.run.ID, wish(m)}
			}
		}
	}
}

// supersede marks the proposals that wait and can be approved no more: a later
// run proposes otherwise, or the bucket was changed.
func (o *Options) supersede(ctx context.Context, l *later, f *findings) error {
	var waiting []*grlv1.RunResult
	for _, m := range f.results {
		if pending(m) {
			m.State = grlv1.ProposalState_PROPOSAL_STATE_PENDING
			waiting = append(waiting, m)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	since, err := o.since(ctx, l, f.run.ID)
	if err != nil {
		return err
	}
	present, err := o.Desk.Present(ctx)
	if err != nil {
		return err
	}
	for _, m := range waiting {
		e, err := toEdit(m)
		if w := since[m.GetBucket()]; err != nil || !present.Holds(&e) || w.run > f.run.ID && w.wish != wish(m) {
			m.State = grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED
		}
	}
	return nil
}
