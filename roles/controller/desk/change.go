package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/policy/guard"
	"grl/proto/access"
	"grl/store/ledger"
)

// smallChange is how many buckets a change may touch to go to all zones at
// once.
const smallChange = 10

// maxTries bounds how often a change is merged anew because another one came
// first.
const maxTries = 10

// proposal is a change before it is compared with the head.
type proposal struct {
	by     By
	action string // for the audit
	reason string
	force  bool
	now    bool
	dryRun bool
	atOnce bool // it goes to all zones, however large it is
	// byRegion says that it goes region by region, however small it is.
	byRegion bool
	// endsRollout says that it may be made while a rollout is under way.
	endsRollout bool
	// draft makes the change of the head, while such a rollout is kept.
	draft func(ctx context.Context, head *snapshot, rollout ledger.Rollout) (draft, error)
}

// draft is a proposal compared with the head.
type draft struct {
	next *snapshot
	// sources is called with the number of the revision that holds next.
	sources func(revision uint64) ([]ledger.Source, error)
	kept    []Conflict
	noRails bool // the rails say what they see, and need no force
	// judged says that the rails were asked: findings is what they say, and none
	// of it needs force.
	judged   bool
	findings []guard.Finding
}

// change makes a change and returns when it is active here, or says what it
// would do.
func (d *Desk) change(ctx context.Context, p proposal) (Outcome, error) {
	if err := d.checkProposal(ctx, &p); err != nil {
		return Outcome{}, err
	}
	out, err := d.inTurn(ctx, p)
	if err != nil || !out.Changed || p.dryRun {
		return out, err
	}
	return out, d.active(ctx, out.Revision.Number, 0)
}

// inTurn makes a change when no other one is being made here.
func (d *Desk) inTurn(ctx context.Context, p proposal) (Outcome, error) {
	select {
	case <-d.turn:
		defer func() { d.turn <- struct{}{} }()
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	for try := 1; ; try++ {
		out, err := d.attempt(ctx, p)
		if !errors.Is(err, ledger.ErrConflict) || try == maxTries {
			return out, err
		}
	}
}

func (d *Desk) checkProposal(ctx context.Context, p *proposal) error {
	if what := checkReason(p.reason); what != "" {
		return invalid("reason", "%s", what)
	}
	if p.now && !p.force {
		return invalid("now", "needs force")
	}
	if p.force && p.reason == "" {
		return invalid("reason", "force needs one")
	}
	level := p.by.Person.Level
	if level < access.Editor {
		return d.deny(ctx, p.by, p.action, nil, "changing limits needs the role editor")
	}
	if p.force && level < access.Admin {
		return d.deny(ctx, p.by, p.action, nil, "force needs the role admin")
	}
	return nil
}

// attempt makes the change from the present head. It returns ErrConflict if
// another one came first.
func (d *Desk) attempt(ctx context.Context, p proposal) (Outcome, error) {
	state, err := d.opts.Ledger.State(ctx)
	if err != nil {
		return Outcome{}, err
	}
	head, err := d.readHead(ctx, state.Head)
	if err != nil {
		return Outcome{}, err
	}
	made, err := p.draft(ctx, head, state.Rollout)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Revision: head.revision, Kept: made.kept[:min(len(made.kept), maxKept)]}
	changed := head.differences(made.next)
	if len(changed) == 0 {
		return out, d.remember(ctx, p, head, made)
	}
	if err := d.checkRights(ctx, p, head, made.next, changed); err != nil {
		return Outcome{}, err
	}
	if err := made.next.checkReceivable(changed); err != nil {
		return Outcome{}, err
	}
	changes := changesOf(head, made.next, changed)
	out.Changed, out.Changes, out.LeftOut = true, changes, max(0, len(changes)-maxChanges)
	out.Changes = changes[:len(changes)-out.LeftOut]
	forced, err := d.guard(ctx, p, made, head, changed, &out)
	if err != nil {
		return Outcome{}, err
	}
	if underWay(state.Rollout) && !p.endsRollout && !p.dryRun {
		return Outcome{}, &RolloutError{state.Rollout}
	}
	d.plan(p, forced, head, &out)
	if p.dryRun {
		return out, nil
	}
	return d.commit(ctx, p, forced, head, made, changes, out)
}

// guard asks the rails. It reports whether the change passes them by force.
func (d *Desk) guard(ctx context.Context, p proposal, made draft, head *snapshot, changed []string, out *Outcome) (forced bool, err error) {
	findings := made.findings
	if !made.judged {
		pairs := guard.Pairs(head.services(changed), made.next.services(changed))
		findings = guard.Judge(pairs, head.buckets(), d.past(ctx, historyWithin, func(string) {}))
	}
	if made.noRails {
		for i := range findings {
			findings[i].NeedsForce = false
		}
	}
	out.Findings = findings[:min(len(findings), maxFindings)]
	var needed []guard.Finding
	for _, f := range findings {
		if f.NeedsForce {
			needed = append(needed, f)
		}
	}
	if len(needed) > 0 && !p.force && !p.dryRun {
		d.noteRefusal(ctx, p, out.Changes, needed)
		return false, &GuardError{needed[:min(len(needed), maxFindings)]}
	}
	return len(needed) > 0, nil
}

// plan decides whether the change goes zone by zone, or region by region: not
// the first one, before which nothing was limited.
func (d *Desk) plan(p proposal, forced bool, head *snapshot, out *Outcome) {
	steps := d.steps(p)
	if len(steps) < 2 || head.revision.Number == 0 || p.now || p.atOnce || !p.byRegion && !forced && len(out.Changes) <= smallChange {
		return
	}
	now := time.Now()
	out.Rollout = &ledger.Rollout{
		Revision: head.revision.Number + 1, From: head.revision.Number, State: ledger.RolloutRunning,
		Reached: steps[0], Forced: forced, ByRegion: p.byRegion, StartedAt: now, StepAt: now,
	}
	out.Waiting = slices.Concat(steps[1:]...)
}

// steps returns the zones that a rollout reaches together, in its order.
func (d *Desk) steps(p proposal) [][]string {
	if p.byRegion {
		return d.opts.Traffic.Regions()
	}
	var steps [][]string
	for _, zone := range d.opts.Traffic.Zones() {
		steps = append(steps, []string{zone})
	}
	return steps
}

func (d *Desk) commit(ctx context.Context, p proposal, forced bool, head *snapshot, made draft, changes []Change, out Outcome) (Outcome, error) {
	change := ledger.Change{
		Act:       p.act(forced || p.now),
		Action:    p.action,
		Subjects:  subjects(changes),
		Documents: made.next.texts(),
		Rollout:   out.Rollout,
	}
	change.Before, change.After = auditTexts(changes)
	var err error
	if change.Sources, err = made.sources(head.revision.Number + 1); err != nil {
		return Outcome{}, err
	}
	revision, err := d.opts.Ledger.Apply(ctx, head.revision.Number, change)
	if err != nil {
		return Outcome{}, err
	}
	made.next.revision = revision
	d.head.Store(made.next)
	out.Revision = revision
	d.opts.Log.InfoContext(ctx, "changed the configuration",
		"revision", revision.Number, "action", p.action, "author", revision.Author, "changes", len(changes), "forced", change.Forced)
	return out, nil
}

// remember notes that files which change nothing were applied.
func (d *Desk) remember(ctx context.Context, p proposal, head *snapshot, made draft) error {
	if p.dryRun {
		return nil
	}
	sources, err := made.sources(head.revision.Number)
	if err != nil || len(sources) == 0 {
		return err
	}
	_, err = d.opts.Ledger.Apply(ctx, head.revision.Number, ledger.Change{
		Act: p.act(false), Action: p.action, Documents: head.texts(), Sources: sources,
	})
	return err
}

func (p *proposal) act(forced bool) ledger.Act { return p.by.act(p.reason, forced) }

// act returns who did something, now.
func (b By) act(reason string, forced bool) ledger.Act {
	return ledger.Act{Actor: b.Person.Name, From: b.From, RequestID: b.RequestID, Reason: reason, Forced: forced, At: time.Now()}
}

// maxSubjects bounds what an audit entry names.
const maxSubjects = 500

// subjects returns the items that changed or, if they are many, their services.
func subjects(changes []Change) []string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Bucket)
	}
	if len(names) <= maxSubjects {
		return names
	}
	names = nil
	for _, c := range changes { // in order, so equal ones are neighbours
		if s := serviceOf(c.Bucket); len(names) == 0 || names[len(names)-1] != s {
			names = append(names, s)
		}
	}
	if more := len(names) - maxSubjects; more > 0 {
		names = append(names[:maxSubjects], fmt.Sprintf("and %d more services", more))
	}
	return names
}

// auditTexts returns what the items were and are; the ledger cuts them.
func auditTexts(changes []Change) (before, after string) {
	var was, is strings.Builder
	for _, c := range changes {
		if c.Before != "" {
			fmt.Fprintf(&was, "# %s\n%s", c.Bucket, c.Before)
		}
		if c.After != "" {
			fmt.Fprintf(&is, "# %s\n%s", c.Bucket, c.After)
		}
	}
	return was.String(), is.String()
}

// noSources is that of a draft which comes from no files.
func noSources(uint64) ([]ledger.Source, error) { return nil, nil }

// historyWithin is how long the rails may read history in all, of what a person
// waits for. What they do not get to counts as unknown.
const historyWithin = 5 * time.Second

// past returns what the rails ask for of a pair, for as long as within. unread
// hears which buckets' history could not be read.
func (d *Desk) past(ctx context.Context, within time.Duration, unread func(bucket string)) func(guard.Pair) guard.Past {
	now := time.Now()
	end := now.Add(within)
	return func(p guard.Pair) guard.Past {
		var past guard.Past
		if time.Now().After(end) {
			unread(p.Name())
			return past
		}
		if key := p.Key(); key != "" {
			ctx, cancel := context.WithDeadline(ctx, end)
			defer cancel()
			cells, err := d.opts.Traffic.History(ctx, key, now.AddDate(0, 0, -guard.Days), now)
			if err != nil {
				d.opts.Log.WarnContext(ctx, "cannot read history for the guard rails", "bucket", key, "err", err)
				end = now // do not try the others
				unread(p.Name())
			}
			past.Cells = cells
		}
		if len(past.Cells) == 0 && p.After != nil {
			past.NowRPS = d.offeredTo(p.After)
		}
		return past
	}
}

// offeredTo returns what is offered now where a bucket matches; 0: unknown.
func (d *Desk) offeredTo(b *limiter.Bucket) float64 {
	if b.Verified || b.Cost != (limiter.Cost{}) {
		return 0 // it counts otherwise
	}
	rps, _ := d.opts.Traffic.Offered(b.Service, b.Match)
	return rps
}
