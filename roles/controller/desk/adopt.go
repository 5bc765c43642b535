package desk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"grl/limiter"
	"grl/policy/guard"
	"grl/proto/access"
	"grl/store/ledger"
)

const (
	// MachineSource is the source of the revisions that the configurator made and
	// no person approved: a person's change of the same bucket outranks them.
	MachineSource = "rlc"
	// machineName is whom the audit names for them. No account has such a name,
	// since none has a space.
	machineName = "limit configurator"
	// machineHistoryWithin is how long the rails may read history of a revision of
	// the configurator, for which nobody waits.
	machineHistoryWithin = time.Minute
	// judgementKept is how long what the rails said of one holds, if the head
	// stays.
	judgementKept = 5 * time.Minute
)

// Machine returns who the configurator is, for what no person asked for.
func Machine(from, requestID string) By {
	return By{Person: access.Person{Name: machineName, Level: access.Admin, By: machineName}, From: from, RequestID: requestID}
}

// AdoptRequest asks for computed limits to become the configuration.
type AdoptRequest struct {
	By
	// Edits are each of another bucket.
	Edits []Edit
	// Action is for the audit, such as "rlc.approve".
	Action string
	Reason string
	DryRun bool
	// Force passes the guard rails. It needs a reason, and the level admin.
	Force bool
	// Machine says that no person approved the edits. Then an edit that a guard
	// rail refuses, or that does not hold, is left out by itself; the rail about
	// many buckets at once does not hold, since the revision goes region by region
	// instead; and MachineSource is its source.
	Machine bool
}

// Adoption is what an Adopt did, or a dry run of it would do.
type Adoption struct {
	Outcome
	// Taken are the full names of the edits that are part of the configuration
	// then, also of those that were so before.
	Taken []string
	// Superseded are those of the edits whose bucket is not as they have it before,
	// which are left out.
	Superseded []string
	// Refused are the edits that were left out for what a guard rail says, or since
	// they do not hold; only of a Machine.
	Refused []RefusedEdit
	// Documents has the normalised YAML of the services that change.
	Documents map[string][]byte
}

// RefusedEdit is an edit that was left out, and why.
type RefusedEdit struct {
	Bucket   string
	Findings []guard.Finding // never empty; without a Rail: it does not hold
}

// Adopt makes one revision of computed limits. Errors are those of Apply.
func (d *Desk) Adopt(ctx context.Context, r AdoptRequest) (Adoption, error) {
	a := adoption{desk: d, request: r}
	if r.Machine && r.Force {
		return Adoption{}, invalid("force", "is for people")
	}
	if err := a.check(); err != nil {
		return Adoption{}, err
	}
	out, err := d.change(ctx, proposal{
		by: r.By, action: r.Action, reason: r.Reason, force: r.Force, dryRun: r.DryRun, byRegion: r.Machine, draft: a.draft,
	})
	a.result.Outcome = out
	return a.result, err
}

// adoption is one Adopt under way.
type adoption struct {
	desk    *Desk
	request AdoptRequest
	result  Adoption // of the last draft
}

// check makes sure that no bucket is edited twice.
func (a *adoption) check() error {
	seen := make(map[string]bool, len(a.request.Edits))
	for i := range a.request.Edits {
		bucket := a.request.Edits[i].Bucket
		if seen[bucket] {
			return invalid("edits", "%q is there twice", clip(bucket))
		}
		seen[bucket] = true
	}
	return nil
}

// draft makes the edits that hold of the head.
func (a *adoption) draft(ctx context.Context, head *snapshot, _ ledger.Rollout) (draft, error) {
	a.result = Adoption{}
	var made []madeEdit
	for i := range a.request.Edits {
		m, state, err := a.request.Edits[i].of(head)
		if err == nil && a.request.Machine && m.isNew && m.after.Behavior != limiter.Allow {
			err = errors.New("a bucket that nobody has seen begins in shadow")
		}
		switch {
		case err != nil && a.request.Machine:
			a.refuse(m.after.FullName(), guard.Finding{Bucket: m.after.FullName(), Text: err.Error()})
		case err != nil:
			return draft{}, err
		case state == editSuperseded:
			a.result.Superseded = append(a.result.Superseded, a.request.Edits[i].Bucket)
		case state == editDone:
			a.result.Taken = append(a.result.Taken, a.request.Edits[i].Bucket)
		default:
			made = append(made, m)
		}
	}
	made, next, err := a.assemble(head, made)
	if err != nil {
		return draft{}, err
	}
	out := draft{next: next, sources: a.sources(head)}
	if a.request.Machine {
		if out, err = a.sift(ctx, head, made, out); err != nil {
			return draft{}, err
		}
	} else {
		a.take(made)
	}
	a.result.Documents = make(map[string][]byte)
	for _, service := range head.differences(out.next) {
		a.result.Documents[service] = out.next.documents[service].text
	}
	return out, nil
}

func (a *adoption) take(made []madeEdit) {
	for i := range made {
		a.result.Taken = append(a.result.Taken, made[i].after.FullName())
	}
}

func (a *adoption) refuse(bucket string, why ...guard.Finding) {
	a.result.Refused = append(a.result.Refused, RefusedEdit{bucket, why})
}

// sift leaves out what a guard rail refuses.
func (a *adoption) sift(ctx context.Context, head *snapshot, made []madeEdit, out draft) (draft, error) {
	why := make(map[string][]guard.Finding)
	out.judged = true
	for _, f := range a.desk.judgeMachine(ctx, head, out.next) {
		switch {
		case f.Rail == guard.ManyBuckets: // it goes region by region instead
		case f.NeedsForce:
			why[f.Bucket] = append(why[f.Bucket], f)
		default:
			out.findings = append(out.findings, f)
		}
	}
	if len(why) == 0 {
		a.take(made)
		return out, nil
	}
	for _, bucket := range slices.Sorted(maps.Keys(why)) {
		a.refuse(bucket, why[bucket]...)
	}
	made = slices.DeleteFunc(made, func(m madeEdit) bool { return why[m.after.FullName()] != nil })
	out.findings = slices.DeleteFunc(out.findings, func(f guard.Finding) bool { return why[f.Bucket] != nil })
	made, next, err := a.assemble(head, made)
	if err != nil {
		return draft{}, err
	}
	a.take(made)
	out.next = next
	return out, nil
}

// judgement is what the rails said of a revision of the configurator, which asks
// first what would be taken, and then for that.
type judgement struct {
	key      string
	at       time.Time
	findings []guard.Finding
}

// judgeMachine asks the rails about a revision of the configurator. What they
// cannot judge, since history cannot be read, they refuse.
func (d *Desk) judgeMachine(ctx context.Context, head, next *snapshot) []guard.Finding {
	changed := head.differences(next)
	key := fmt.Sprintf("r%d", head.revision.Number)
	for _, service := range changed {
		key += " " + next.documents[service].hash.String()
	}
	if last := d.judged.Load(); last != nil && last.key == key && time.Since(last.at) < judgementKept {
		return last.findings
	}
	var unread []guard.Finding
	pairs := guard.Pairs(head.services(changed), next.services(changed))
	findings := guard.Judge(pairs, head.buckets(), d.past(ctx, machineHistoryWithin, func(bucket string) {
		unread = append(unread, guard.Finding{
			Bucket: bucket, NeedsForce: true, Text: fmt.Sprintf("cannot be judged: its history of the last %d days could not be read", guard.Days),
		})
	}))
	if len(unread) == 0 {
		d.judged.Store(&judgement{key, time.Now(), findings})
	}
	return append(findings, unread...)
}

// sources names where a revision came from, if there is one.
func (a *adoption) sources(head *snapshot) func(uint64) ([]ledger.Source, error) {
	return func(revision uint64) ([]ledger.Source, error) {
		if !a.request.Machine || revision == head.revision.Number {
			return nil, nil
		}
		return []ledger.Source{{Name: MachineSource, Hash: fmt.Sprintf("r%d", revision)}}, nil
	}
}
