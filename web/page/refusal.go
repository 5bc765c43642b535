package page

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
)

// Refusal is why something was refused, ready to print.
type Refusal struct {
	Title     string // a sentence without a full stop
	Text      string
	Status    int // of HTTP
	Problems  []Problem
	Findings  []Finding // of guard rails, which force passes
	Conflicts []Conflict
}

// Problem is one fault of a form or file.
type Problem struct {
	Field string // of the form, or name of the file
	Line  int    // 0: unknown
	Text  string
}

// Finding is what a guard rail says.
type Finding struct {
	Bucket, Text string
	NeedsForce   bool
}

// Conflict is a bucket that two changes want otherwise.
type Conflict struct {
	Bucket             string
	Revision           uint64
	Author, Reason     string
	At                 int64 // Unix milliseconds
	Base, Theirs, Ours string
	BaseRevision       uint64
}

// Refusal returns what to tell a person of an error: of a service, of People, or
// one that is logged here, since its text is not for them.
func (s *Site) Refusal(r *http.Request, err error) Refusal {
	var known interface{ Refusal() (string, int) }
	if errors.As(err, &known) {
		text, status := known.Refusal()
		return Refusal{Title: format.Sentence(text), Status: status}
	}
	api := (*connect.Error)(nil)
	if !errors.As(err, &api) {
		if !errors.Is(err, context.Canceled) {
			s.Log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, "err", err)
		}
		return Refusal{Title: "Something went wrong here", Text: "The log of the controller says why.", Status: http.StatusInternalServerError}
	}
	out := Refusal{Title: format.Printable(api.Message()), Status: StatusOf(api.Code())}
	for _, d := range api.Details() {
		if m, err := d.Value(); err == nil {
			if refusal, ok := m.(*grlv1.Refusal); ok {
				out.add(refusal)
			}
		}
	}
	return out
}

func (f *Refusal) add(m *grlv1.Refusal) {
	for _, p := range m.GetProblems() {
		f.Problems = append(f.Problems, Problem{Field: format.Printable(p.GetWhere()), Line: int(p.GetLine()), Text: format.Printable(p.GetText())})
	}
	f.Findings = append(f.Findings, Findings(m.GetFindings())...)
	for _, c := range m.GetConflicts() {
		f.Conflicts = append(f.Conflicts, Conflict{
			Bucket: format.Printable(c.GetBucket()), Revision: c.GetRevision().GetNumber(), At: c.GetRevision().GetAtMs(),
			Author: format.Printable(c.GetRevision().GetAuthor()), Reason: format.Printable(c.GetRevision().GetReason()),
			Base: c.GetBaseText(), Theirs: c.GetTheirText(), Ours: c.GetOurText(), BaseRevision: c.GetBase(),
		})
	}
}

// Findings returns what guard rails say, ready to print.
func Findings(in []*grlv1.Finding) []Finding {
	var out []Finding
	for _, m := range in {
		out = append(out, Finding{Bucket: format.Printable(m.GetBucket()), Text: format.Printable(m.GetText()), NeedsForce: m.GetNeedsForce()})
	}
	return out
}

// NeedsForce reports whether force would pass what was refused.
func (f *Refusal) NeedsForce() bool {
	for _, n := range f.Findings {
		if n.NeedsForce {
			return true
		}
	}
	return false
}

// StatusOf returns the HTTP status for an error of the API.
func StatusOf(code connect.Code) int {
	switch code {
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition:
		return http.StatusUnprocessableEntity
	case connect.CodeUnauthenticated, connect.CodePermissionDenied:
		return http.StatusForbidden
	case connect.CodeNotFound:
		return http.StatusNotFound
	case connect.CodeAborted:
		return http.StatusConflict
	case connect.CodeResourceExhausted:
		return http.StatusTooManyRequests
	case connect.CodeUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
