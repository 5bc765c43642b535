package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/store"
)

// Run is one cycle of the configurator. BeginRun sets ID and State.
type Run struct {
	ID             uint64    `json:"id"`    // from 1, without gaps
	State          string    `json:"state"` // RunRunning, RunDone, RunFailed
	Trigger        string    `json:"trigger"`
	RequestID      string    `json:"request_id,omitempty"`
	Author         string    `json:"author,omitempty"` // who asked for it; "": nobody
	Configurator   string    `json:"configurator"`
	DryRun         bool      `json:"dry_run,omitempty"`
	StartedAt      time.Time `json:"started_at"`
	FinishedAt     time.Time `json:"finished_at,omitzero"`
	Source         string    `json:"source,omitempty"` // of history
	PolicyRevision uint64    `json:"policy_revision,omitempty"`
	BaseRevision   uint64    `json:"base_revision,omitempty"` // of the configuration compared with
	Revision       uint64    `json:"revision,omitempty"`      // that it made; 0: none
	Commit         string    `json:"commit,omitempty"`        // of the limits repository; "": none
	Error          string    `json:"error,omitempty"`         // why it failed
	Verified       string    `json:"verified,omitempty"`
	Done           uint32    `json:"done,omitempty"` // buckets looked at so far
	Buckets        uint32    `json:"buckets,omitempty"`
	Outcomes       []uint32  `json:"outcomes,omitempty"` // results by outcome
}

// States of a Run.
const (
	RunRunning = "running"
	RunDone    = "done"
	RunFailed  = "failed"
)

const (
	// MaxRuns is how many runs are kept: the older ones go, with all they found.
	MaxRuns = 200
	// maxOutcomes bounds the kinds of outcome.
	maxOutcomes = 100
	// wentAway is why a run failed that nobody finished.
	wentAway = "configurator went away"
)

const (
	keyRunHead = "rlc-run-head" // the id given out last
	keyRun     = "rlc-run/"
)

// run is the record of a Run.
type run struct {
	Run
	Parts   int `json:"parts,omitempty"`   // records of results
	Decided int `json:"decided,omitempty"` // records of decisions
}

// bound cuts texts to what a record may have, and returns an error for what
// cannot be cut.
func (r *run) bound() error {
	if r.State != RunRunning && r.State != RunDone && r.State != RunFailed {
		return fmt.Errorf("unknown state %q", r.State)
	}
	if len(r.Outcomes) > maxOutcomes {
		return fmt.Errorf("%d outcomes, at most %d", len(r.Outcomes), maxOutcomes)
	}
	for _, text := range []*string{&r.Trigger, &r.RequestID, &r.Author, &r.Configurator, &r.Source, &r.Commit, &r.Error, &r.Verified} {
		*text = bounded(*text, maxShort)
	}
	r.StartedAt, r.FinishedAt = r.StartedAt.UTC().Truncate(time.Millisecond), r.FinishedAt.UTC().Truncate(time.Millisecond)
	if !r.FinishedAt.IsZero() {
		if err := checkTime("end", r.FinishedAt); err != nil {
			return err
		}
	}
	return checkTime("start", r.StartedAt)
}

// BeginRun opens a run of the configurator act.Actor and returns it with its id.
// One that is open fails: whoever began it went away. Only the last MaxRuns are
// kept.
func (l *Ledger) BeginRun(ctx context.Context, act Act, r Run) (Run, error) {
	begun, err := l.beginRun(ctx, act, r)
	if err == nil {
		err = l.pruneRuns(ctx, begun.ID)
	}
	if err != nil {
		return Run{}, fmt.Errorf("begin run: %w", err)
	}
	return begun, nil
}

func (l *Ledger) beginRun(ctx context.Context, act Act, r Run) (Run, error) {
	if err := act.validate(); err != nil {
		return Run{}, err
	}
	next := run{Run: r}
	next.State = RunRunning
	if next.StartedAt.IsZero() {
		next.StartedAt = act.At
	}
	if err := next.bound(); err != nil {
		return Run{}, err
	}
	err := l.change(ctx, []string{keyRunHead}, func(ctx context.Context, records []store.Record) (*plan, error) {
		last, err := l.lastRun(ctx, records[0])
		if err != nil {
			return nil, err
		}
		next.ID = last + 1
		p, err := l.abandon(ctx, last, act.At)
		if err != nil {
			return nil, err
		}
		p.writes = append(p.writes, put(keyRunHead, next.ID), put(numbered(keyRun, next.ID), next))
		return p, nil
	})
	return next.Run, err
}

// lastRun returns the id given out last. If the record of it is not there, it is
// that of the newest run: the record may have been damaged, and left out.
func (l *Ledger) lastRun(ctx context.Context, head store.Record) (last uint64, err error) {
	if head.Version != 0 {
		return last, decode(head, &last)
	}
	newest, err := l.Runs(ctx, 0, 1)
	if len(newest) > 0 {
		last = newest[0].ID
	}
	return last, err
}

// abandon returns the plan that makes a run fail, if it is open. No other one can
// be: each was the last once.
func (l *Ledger) abandon(ctx context.Context, id uint64, at time.Time) (*plan, error) {
	records, err := l.engine.Get(ctx, numbered(keyRun, id))
	if err != nil {
		return nil, err
	}
	p := &plan{conditions: []store.Condition{{Key: records[0].Key, Version: records[0].Version}}}
	r, err := decodeRun(records[0])
	if errors.Is(err, ErrNotFound) || err == nil && r.State != RunRunning {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	r.State, r.Error, r.FinishedAt = RunFailed, wentAway, at.UTC().Truncate(time.Millisecond)
	p.writes = []store.Write{put(records[0].Key, r)}
	return p, nil
}

// pruneRuns deletes the runs before the last MaxRuns, each after what it found,
// so that it is found again if that is interrupted.
func (l *Ledger) pruneRuns(ctx context.Context, last uint64) error {
	for {
		records, err := l.engine.List(ctx, keyRun, "", 1)
		if err != nil || len(records) == 0 {
			return err
		}
		if last < MaxRuns || records[0].Key > numbered(keyRun, last-MaxRuns) {
			return nil
		}
		number := records[0].Key[len(keyRun):]
		for _, prefix := range []string{keyResult, keyDecision} {
			if err := l.deleteBelow(ctx, prefix+number+"/"); err != nil {
				return err
			}
		}
		if err := l.write(ctx, []store.Write{{Key: records[0].Key, Delete: true}}); err != nil {
			return err
		}
	}
}

// deleteBelow deletes all that is below a prefix, little by little.
func (l *Ledger) deleteBelow(ctx context.Context, prefix string) error {
	for {
		records, err := l.engine.List(ctx, prefix, "", pageParts)
		if err != nil || len(records) == 0 {
			return err
		}
		var writes []store.Write
		for _, r := range records {
			writes = append(writes, store.Write{Key: r.Key, Delete: true})
		}
		if err := l.write(ctx, writes); err != nil {
			return err
		}
	}
}

// Run returns the run of an id. ErrNotFound if there is none.
func (l *Ledger) Run(ctx context.Context, id uint64) (Run, error) {
	r, err := l.run(ctx, id)
	if err != nil {
		return Run{}, fmt.Errorf("read run %d: %w", id, err)
	}
	return r.Run, nil
}

func (l *Ledger) run(ctx context.Context, id uint64) (r run, err error) {
	records, err := l.engine.Get(ctx, numbered(keyRun, id))
	if err != nil {
		return run{}, err
	}
	return decodeRun(records[0])
}

func decodeRun(record store.Record) (r run, err error) {
	if record.Version == 0 {
		return run{}, ErrNotFound
	}
	return r, decode(record, &r)
}

// Runs returns the runs with ids below before, 0: all, the newest first, limit at
// most.
func (l *Ledger) Runs(ctx context.Context, before uint64, limit int) ([]Run, error) {
	all, err := list[Run](ctx, l.engine, keyRun)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	slices.Reverse(all)
	all = slices.DeleteFunc(all, func(r Run) bool { return before != 0 && r.ID >= before })
	return all[:min(len(all), max(limit, 0))], nil
}

// UpdateRun lets update change a run, but not its id, and returns it. update may
// be called several times. ErrNotFound if there is no such run; a run that is
// over cannot run again.
func (l *Ledger) UpdateRun(ctx context.Context, id uint64, update func(*Run)) (Run, error) {
	r, err := l.editRun(ctx, id, func(r *run) (*plan, error) {
		update(&r.Run)
		return &plan{}, nil
	})
	if err != nil {
		return Run{}, fmt.Errorf("update run %d: %w", id, err)
	}
	return r, nil
}

// FinishRun is UpdateRun at the end of a run, which update leaves done or
// failed. One that made a revision has an entry "rlc.run" in the audit.
func (l *Ledger) FinishRun(ctx context.Context, act Act, id uint64, update func(*Run)) (Run, error) {
	r, err := Run{}, act.validate()
	if err == nil {
		r, err = l.editRun(ctx, id, func(r *run) (*plan, error) {
			update(&r.Run)
			if r.State == RunRunning {
				return nil, errors.New("it still runs")
			}
			if r.Revision == 0 {
				return &plan{}, nil
			}
			entry := act.entry("rlc.run", []string{r.subject()}, "", string(encode(r.Run)))
			entry.Revision = r.Revision
			return &plan{entry: entry}, nil
		})
	}
	if err != nil {
		return Run{}, fmt.Errorf("finish run %d: %w", id, err)
	}
	return r, nil
}

// subject is what the audit names a run.
func (r *Run) subject() string { return fmt.Sprintf("run %d", r.ID) }

// editRun lets edit change a run and plan what is written with it.
func (l *Ledger) editRun(ctx context.Context, id uint64, edit func(*run) (*plan, error)) (Run, error) {
	var r run
	key := numbered(keyRun, id)
	err := l.change(ctx, []string{key}, func(_ context.Context, records []store.Record) (p *plan, err error) {
		if r, err = decodeRun(records[0]); err != nil {
			return nil, err
		}
		was := r.State
		if p, err = edit(&r); err != nil {
			return nil, err
		}
		r.ID = id
		if err := r.bound(); err != nil {
			return nil, err
		}
		if was != RunRunning && r.State == RunRunning {
			return nil, fmt.Errorf("it is %s", was)
		}
		p.writes = append(p.writes, put(key, r))
		return p, nil
	})
	return r.Run, err
}
