package desk

import (
	"errors"
	"fmt"
	"strings"

	"grl/limiter/limitsfile"
	"grl/policy/guard"
	"grl/store/ledger"
)

// ErrNotFound says that there is no such revision, bucket, service or cap.
var ErrNotFound = ledger.ErrNotFound

// Problem is one fault of what was handed in.
type Problem struct {
	// Where is the name of a file or of a field.
	Where string
	// Line and Column count from 1; 0: unknown.
	Line, Column int
	Text         string
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", p.Where, p.Line, p.Column, p.Text)
	}
	return p.Where + ": " + p.Text
}

// InvalidError says that what was handed in does not hold.
type InvalidError struct{ Problems []Problem } // never empty

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func invalid(where, format string, args ...any) *InvalidError {
	return &InvalidError{[]Problem{{Where: where, Text: fmt.Sprintf(format, args...)}}}
}

// invalidFiles turns the errors of limits files into one of the desk.
func invalidFiles(err error) error {
	var errs limitsfile.Errors
	if !errors.As(err, &errs) {
		return invalid("files", "%v", err)
	}
	out := &InvalidError{}
	for i, e := range errs {
		if i == maxProblems {
			out.Problems = append(out.Problems, Problem{Where: "files", Text: fmt.Sprintf("and %d more", len(errs)-i)})
			break
		}
		bare := *e
		bare.File, bare.Line, bare.Column = "", 0, 0
		out.Problems = append(out.Problems, Problem{Where: e.File, Line: e.Line, Column: e.Column, Text: bare.Error()})
	}
	return out
}

// GuardError says that a change needs force and a reason.
type GuardError struct{ Findings []guard.Finding } // those that need force

func (e *GuardError) Error() string {
	lines := []string{"needs force and a reason:"}
	for i, f := range e.Findings {
		if i == 20 {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Findings)-i))
			break
		}
		if f.Bucket != "" {
			f.Text = f.Bucket + ": " + f.Text
		}
		lines = append(lines, f.Text)
	}
	return strings.Join(lines, "\n")
}

// Conflict is a bucket that two changes want otherwise, or what a service says
// besides its buckets.
type Conflict struct {
	Bucket string // full name, or the service
	Base   uint64 // revision that this change was made from
	// Revision is the later change.
	Revision ledger.Revision
	// The bucket as YAML: at the base, at the head, and as asked for; "" where
	// there is none.
	BaseText, TheirText, OurText string
}

// ConflictError lists the conflicts of a change.
type ConflictError struct{ Conflicts []Conflict } // never empty

func (e *ConflictError) Error() string {
	lines := make([]string, 0, len(e.Conflicts))
	for i, c := range e.Conflicts {
		if i == 20 {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Conflicts)-i))
			break
		}
		by := c.Revision.Author
		if c.Revision.Reason != "" {
			by += fmt.Sprintf(" (%s)", c.Revision.Reason)
		}
		lines = append(lines, fmt.Sprintf("%s was changed since r%d, in r%d at %s by %s, and is changed otherwise here",
			c.Bucket, c.Base, c.Revision.Number, c.Revision.At.UTC().Format("2006-01-02 15:04:05 UTC"), by))
	}
	return strings.Join(lines, "\n")
}

// DeniedError says that the person may not do this.
type DeniedError struct{ Text string }

func (e *DeniedError) Error() string { return e.Text }

// RolloutError says that a rollout is under way, or was stopped.
type RolloutError struct{ Rollout ledger.Rollout }

func (e *RolloutError) Error() string {
	r := e.Rollout
	return fmt.Sprintf("the rollout of r%d is under way and has reached %s: wait for it, finish it, or roll back to r%d, before another change",
		r.Revision, strings.Join(r.Reached, ", "), r.From)
}

// PendingError says that a change is saved and this controller has not
// installed it yet. It must not be handed in again.
type PendingError struct{ Revision uint64 } // 0: it made no revision

func (e *PendingError) Error() string {
	if e.Revision == 0 {
		return "saved, but not active at this controller yet"
	}
	return fmt.Sprintf("saved as r%d, but not active at this controller yet", e.Revision)
}
