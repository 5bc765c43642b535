package command

import (
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
	"grl/web/diff"
)

// mostChanges bounds the changes that a table lists.
const mostChanges = 50

// outcomeText says what a change of the configuration did, or would do.
func outcomeText(o *grlv1.Outcome, dryRun bool, done string) string {
	var b strings.Builder
	for i, c := range o.GetChanges() {
		if i == mostChanges {
			fmt.Fprintf(&b, "… and %d more: -o json has all\n", len(o.GetChanges())-i)
			break
		}
		b.WriteString(changeText(c))
	}
	b.WriteString(keptText(o.GetKept()))
	for _, f := range o.GetFindings() {
		b.WriteString(remote.FindingText(f, !dryRun) + "\n")
	}
	revision := o.GetRevision().GetNumber()
	switch {
	case !o.GetChanged():
		fmt.Fprintf(&b, "nothing changed: r%d holds\n", revision)
	case dryRun:
		fmt.Fprintf(&b, "would change %s of r%d; nothing was changed\n", count(len(o.GetChanges()), "bucket"), revision)
	default:
		fmt.Fprintf(&b, "%s r%d\n", done, revision)
	}
	if r := o.GetRollout(); r != nil && o.GetChanged() {
		b.WriteString(rolloutText(r) + "\n")
	}
	return terminal.Printable(b.String())
}

// keptText names the later edits that limits files do not have, and says what
// writes them.
func keptText(kept []*grlv1.Conflict) string {
	var b strings.Builder
	for i, k := range kept {
		if i == mostChanges {
			fmt.Fprintf(&b, "… and %d more: -o json has all\n", len(kept)-i)
			break
		}
		r := k.GetRevision()
		fmt.Fprintf(&b, "kept     %s as r%d by %s has it; the files do not\n", k.GetBucket(), r.GetNumber(), r.GetAuthor())
	}
	if len(kept) > 0 {
		b.WriteString("         grl export -o DIR writes the files as the limits hold\n")
	}
	return b.String()
}

// changeText returns a line for a bucket, and of one that changed the lines that
// did.
func changeText(c *grlv1.BucketChange) string {
	switch c.GetKind() {
	case grlv1.BucketChange_KIND_ADDED:
		return "added    " + c.GetBucket() + "\n"
	case grlv1.BucketChange_KIND_REMOVED:
		return "removed  " + c.GetBucket() + "\n"
	}
	text := "changed  " + c.GetBucket() + "\n"
	for _, l := range diff.Lines(c.GetBefore(), c.GetAfter()) {
		if l.Mark == diff.Old || l.Mark == diff.New {
			text += "         " + string(l.Mark) + " " + strings.TrimSpace(l.Text) + "\n"
		}
	}
	return text
}

// rolloutText says how far a rollout is.
func rolloutText(r *grlv1.Rollout) string {
	reached := "no zone"
	if len(r.GetReached()) > 0 {
		reached = strings.Join(r.GetReached(), ", ")
	}
	switch r.GetState() {
	case grlv1.Rollout_STATE_DONE:
		return fmt.Sprintf("r%d is in all zones", r.GetRevision())
	case grlv1.Rollout_STATE_STOPPED:
		return fmt.Sprintf("the rollout of r%d was stopped: %s; %s has it, the others hold r%d: grl rollback goes back, grl rollout finish goes on",
			r.GetRevision(), dash(r.GetReason()), reached, r.GetFromRevision())
	}
	text := fmt.Sprintf("r%d goes out zone by zone: in %s", r.GetRevision(), reached)
	if len(r.GetWaiting()) > 0 {
		text += ", then " + strings.Join(r.GetWaiting(), ", ")
	}
	return text + "; grl rollout shows how far it is"
}

// refusedDryRun turns a refusal of what was only to be checked into the exit
// code for what does not hold.
func refusedDryRun(err error, dryRun bool) error {
	if err == nil || !dryRun {
		return err
	}
	if remote.Refusal(err) != nil || remote.Code(err) == connect.CodeInvalidArgument {
		return &ExitError{Code: ExitNotHolds, Err: err}
	}
	return err
}

// changeFlags are those of all changes of the configuration.
type changeFlags struct {
	force, dryRun bool
	reason        string
}

func (f *changeFlags) check() error {
	if f.force && f.reason == "" {
		return wrongUse(errors.New("--force needs --reason"))
	}
	return nil
}
