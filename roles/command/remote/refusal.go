package remote

import (
	"fmt"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
)

// refusalText says why a change was refused, a line or several for each reason;
// empty: there is none.
func refusalText(r *grlv1.Refusal) string {
	var lines []string
	for _, p := range r.GetProblems() {
		lines = append(lines, problemText(p))
	}
	for _, f := range r.GetFindings() {
		lines = append(lines, FindingText(f, false))
	}
	seen := uint64(0)
	for _, c := range r.GetConflicts() {
		lines = append(lines, ConflictText(c))
		seen = max(seen, c.GetRevision().GetNumber())
	}
	if seen > 0 {
		lines = append(lines, fmt.Sprintf("take over into the files what shall stay of it, look at grl diff, and apply with --base %d: all in which they differ from r%d is then meant", seen, seen))
	}
	return strings.Join(lines, "\n")
}

// problemText returns "file:line:column: text".
func problemText(p *grlv1.Problem) string {
	at := p.GetWhere()
	if p.GetLine() > 0 {
		at += fmt.Sprintf(":%d:%d", p.GetLine(), p.GetColumn())
	}
	if at == "" {
		return p.GetText()
	}
	return at + ": " + p.GetText()
}

// FindingText returns what a guard rail says, in one line; passed says that the
// change was made all the same.
func FindingText(f *grlv1.Finding, passed bool) string {
	text := f.GetText()
	if f.GetBucket() != "" {
		text = f.GetBucket() + ": " + text
	}
	switch {
	case !f.GetNeedsForce():
		return "note: " + text
	case passed:
		return "passed by force: " + text
	default:
		return "needs --force and --reason: " + text
	}
}

// ConflictText shows both changes of a bucket.
func ConflictText(c *grlv1.Conflict) string {
	r := c.GetRevision()
	text := fmt.Sprintf("conflict: %s was changed after r%d by r%d (%s)", c.GetBucket(), c.GetBase(), r.GetNumber(), RevisionText(r))
	for _, side := range []struct{ name, text string }{
		{fmt.Sprintf("in r%d, which this change was made from", c.GetBase()), c.GetBaseText()},
		{fmt.Sprintf("in r%d", r.GetNumber()), c.GetTheirText()},
		{"as asked for", c.GetOurText()},
	} {
		text += "\n  " + side.name + ":\n" + indent(side.text)
	}
	return text
}

func indent(text string) string {
	if strings.TrimSpace(text) == "" {
		return "    (not there)"
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// RevisionText says who made a revision, when and why.
func RevisionText(r *grlv1.Revision) string {
	text := r.GetAuthor()
	if text == "" {
		text = r.GetSource()
	}
	if r.GetAtMs() > 0 {
		text += ", " + time.UnixMilli(r.GetAtMs()).UTC().Format("2006-01-02 15:04:05Z")
	}
	if r.GetReason() != "" {
		text += ": " + r.GetReason()
	}
	return text
}
