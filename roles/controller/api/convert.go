package api

import (
	"strings"
	"time"

	"grl/policy/guard"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

// clean makes a text one that a message may carry.
func clean(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromProblems(problems []desk.Problem) []*grlv1.Problem {
	var out []*grlv1.Problem
	for _, p := range problems {
		out = append(out, &grlv1.Problem{Where: clean(p.Where), Line: uint32(p.Line), Column: uint32(p.Column), Text: clean(p.Text)})
	}
	return out
}

func fromFindings(findings []guard.Finding) []*grlv1.Finding {
	var out []*grlv1.Finding
	for _, f := range findings {
		m := &grlv1.Finding{Rail: fromRail(f.Rail), Bucket: f.Bucket, Text: f.Text, NeedsForce: f.NeedsForce}
		if f.Predicted {
			m.PredictedDropShare = &f.DropShare
		}
		out = append(out, m)
	}
	return out
}

func fromRail(r guard.Rail) grlv1.Finding_Rail {
	switch r {
	case guard.BelowPeak:
		return grlv1.Finding_RAIL_BELOW_PEAK
	case guard.AbovePresent:
		return grlv1.Finding_RAIL_ABOVE_PRESENT
	case guard.ManyBuckets:
		return grlv1.Finding_RAIL_MANY_BUCKETS
	case guard.PredictedDrops:
		return grlv1.Finding_RAIL_PREDICTED_DROPS
	default:
		return grlv1.Finding_RAIL_UNSPECIFIED
	}
}

func fromConflicts(conflicts []desk.Conflict) []*grlv1.Conflict {
	var out []*grlv1.Conflict
	for _, c := range conflicts {
		out = append(out, &grlv1.Conflict{
			Bucket: c.Bucket, Base: c.Base, Revision: fromRevision(c.Revision),
			BaseText: c.BaseText, TheirText: c.TheirText, OurText: c.OurText,
		})
	}
	return out
}

func fromRevision(r ledger.Revision) *grlv1.Revision {
	return &grlv1.Revision{Number: r.Number, Author: clean(r.Author), Reason: clean(r.Reason), Source: clean(r.Source), AtMs: millis(r.At)}
}

func fromOutcome(o desk.Outcome) *grlv1.Outcome {
	out := &grlv1.Outcome{
		Revision: fromRevision(o.Revision), Changed: o.Changed, Findings: fromFindings(o.Findings),
		Kept: fromConflicts(o.Kept), ChangesLeftOut: uint32(o.LeftOut),
	}
	for _, c := range o.Changes {
		out.Changes = append(out.Changes, &grlv1.BucketChange{Kind: fromKind(c.Kind), Bucket: c.Bucket, Before: c.Before, After: c.After})
	}
	if o.Rollout != nil {
		out.Rollout = fromRollout(*o.Rollout, o.Waiting)
	}
	return out
}

func fromKind(k desk.Kind) grlv1.BucketChange_Kind {
	switch k {
	case desk.Added:
		return grlv1.BucketChange_KIND_ADDED
	case desk.Removed:
		return grlv1.BucketChange_KIND_REMOVED
	case desk.Changed:
		return grlv1.BucketChange_KIND_CHANGED
	default:
		return grlv1.BucketChange_KIND_UNSPECIFIED
	}
}

func fromRollout(r ledger.Rollout, waiting []string) *grlv1.Rollout {
	state := grlv1.Rollout_STATE_UNSPECIFIED
	switch r.State {
	case ledger.RolloutRunning:
		state = grlv1.Rollout_STATE_RUNNING
	case ledger.RolloutDone:
		state = grlv1.Rollout_STATE_DONE
	case ledger.RolloutStopped:
		state = grlv1.Rollout_STATE_STOPPED
	}
	return &grlv1.Rollout{
		Revision: r.Revision, FromRevision: r.From, State: state, Reached: r.Reached, Waiting: waiting,
		StartedAtMs: millis(r.StartedAt), StepAtMs: millis(r.StepAt), Reason: clean(r.Reason),
	}
}

func fromEntry(e ledger.Entry) *grlv1.AuditEntry {
	return &grlv1.AuditEntry{
		Number: e.Number, AtMs: millis(e.At), Actor: e.Actor, From: e.From, Action: e.Action, Subjects: e.Subjects,
		Before: e.Before, After: e.After, Reason: e.Reason, RequestId: e.RequestID, Forced: e.Forced,
		Revision: e.Revision, Hash: e.Hash,
	}
}
