package bucket

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// mark is what is behind a flag of the chart.
type mark struct {
	at     time.Time
	Number int
	Cap    bool
	At     format.Stamp
	Name   string // of the link: r1471, RLC run 309, Cap
	Path   string
	Text   string
	Until  format.Stamp // of a cap
	Who    string
}

const (
	mostMarks = 9
	runsRead  = 50 // cycles in which a change is looked for
	capsRead  = 200
)

// marks are the changes of the limit and the caps since a time, the last few.
func (s site) marks(ctx context.Context, q query, changes []page.LimitChange, from time.Time) ([]mark, error) {
	out := s.changeMarks(ctx, q, changes, from)
	caps, err := s.capMarks(ctx, q, from)
	if err != nil {
		return nil, err
	}
	out = append(out, caps...)
	slices.SortStableFunc(out, func(a, b mark) int { return a.at.Compare(b.at) })
	out = out[max(0, len(out)-mostMarks):]
	now := time.Now()
	for i := range out {
		out[i].Number = i + 1
		out[i].At = format.NewStamp(out[i].at, now)
	}
	return out, nil
}

func (s site) changeMarks(ctx context.Context, q query, changes []page.LimitChange, from time.Time) []mark {
	var out []mark
	runs := map[uint64]uint64(nil)
	for i := 1; i < len(changes); i++ {
		c := &changes[i]
		text := changeText(&changes[i-1], c)
		if c.At.Before(from) || text == "" || c.Revision == 0 {
			continue
		}
		if runs == nil {
			runs = s.runsOf(ctx)
		}
		m := mark{
			at: c.At, Name: fmt.Sprintf("r%d", c.Revision), Path: revisionPath(c.Revision), Text: text, Who: format.Printable(c.Author),
		}
		if run := runs[c.Revision]; run != 0 {
			m.Name, m.Path = fmt.Sprintf("RLC run %d", run), fmt.Sprintf("/rlc/run?id=%d", run)
			if reason := s.reasonOf(ctx, run, q.bucket()); reason != "" {
				m.Text += ": " + reason
			}
		}
		out = append(out, m)
	}
	return out
}

// changeText says how a limit was changed; "": it was not.
func changeText(was, is *page.LimitChange) string {
	switch {
	case there(was) && !there(is):
		return "removed"
	case !there(was) && there(is):
		return createdText(is)
	}
	var parts []string
	say := func(name string, a, b float64) {
		if a != b {
			parts = append(parts, name+" "+limitText(a)+" → "+limitText(b))
		}
	}
	switch {
	case was.Block != is.Block && is.Block:
		parts = append(parts, "blocked")
	case was.Block != is.Block:
		parts = append(parts, "block → "+limitText(is.LimitRPS))
	default:
		say("limit", was.LimitRPS, is.LimitRPS)
	}
	say("candidate", was.CandidateRPS, is.CandidateRPS)
	if was.Behavior != is.Behavior {
		parts = append(parts, behaviorText(was.Behavior)+" → "+behaviorText(is.Behavior))
	}
	return strings.Join(parts, ", ")
}

// there reports whether there was a bucket at all.
func there(c *page.LimitChange) bool { return c.LimitRPS > 0 || c.Block }

// createdText says how a bucket began.
func createdText(is *page.LimitChange) string {
	text := "created"
	if is.Behavior != limiter.Deny {
		text += " in shadow"
	}
	if is.Block {
		return text + ", blocked"
	}
	text += ", limit " + limitText(is.LimitRPS)
	if is.CandidateRPS > 0 {
		text += ", candidate " + limitText(is.CandidateRPS)
	}
	return text
}

func limitText(rps float64) string {
	if rps <= 0 {
		return "none"
	}
	return format.RPS(rps)
}

func behaviorText(b limiter.Behavior) string {
	if b == limiter.Deny {
		return "deny"
	}
	return "shadow"
}

// runsOf returns which cycles made revisions. That they cannot be read is no
// reason not to show the bucket.
func (s site) runsOf(ctx context.Context) map[uint64]uint64 {
	out := map[uint64]uint64{}
	if s.Services.RLC == nil {
		return out
	}
	got, err := s.Services.RLC.ListRuns(ctx, &grlv1.ListRunsRequest{PageSize: runsRead})
	if err != nil {
		return out
	}
	for _, r := range got.GetRuns() {
		if r.GetRevision() != 0 {
			out[r.GetRevision()] = r.GetId()
		}
	}
	return out
}

// reasonOf returns the sentence by which a cycle explains its limit; "": none.
func (s site) reasonOf(ctx context.Context, run uint64, bucket string) string {
	got, err := s.Services.RLC.GetRun(ctx, &grlv1.GetRunRequest{Id: run, Bucket: bucket, PageSize: 1})
	if err != nil || len(got.GetResults()) == 0 {
		return ""
	}
	return format.Printable(got.GetResults()[0].GetReason())
}

// placedCap is what the audit keeps of a cap.
type placedCap struct {
	Caller    string    `json:"caller"`
	Procedure string    `json:"procedure"`
	RPS       float64   `json:"rps"`
	Block     bool      `json:"block"`
	EndsAt    time.Time `json:"ends_at"`
}

// capMarks are the caps that were placed on requests which the bucket may match.
func (s site) capMarks(ctx context.Context, q query, from time.Time) ([]mark, error) {
	if s.Services.Audit == nil {
		return nil, nil
	}
	got, err := s.Services.Audit.ListAudit(ctx, &grlv1.ListAuditRequest{Action: "cap.place", Subject: q.Service, PageSize: capsRead})
	if err != nil {
		return nil, err
	}
	seen := s.cells(q)
	match := seen.first().Selects
	var out []mark
	for _, e := range got.GetEntries() {
		at := time.UnixMilli(e.GetAtMs())
		if at.Before(from) {
			break
		}
		var c placedCap
		if json.Unmarshal([]byte(e.GetAfter()), &c) != nil {
			continue // it was cut
		}
		if !meet(match.Caller, limiter.Pattern(c.Caller)) || !meet(match.Procedure, limiter.Pattern(c.Procedure)) {
			continue
		}
		out = append(out, mark{at: at, Cap: true, Name: "Cap", Path: "/caps", Text: c.text(), Until: format.NewStamp(c.EndsAt, at), Who: format.Printable(e.GetActor())})
	}
	return out, nil
}

func (c *placedCap) text() string {
	what := c.Caller
	if what == "" {
		what = c.Procedure
	}
	if what == "" {
		what = "all callers"
	}
	how := " at " + format.RPS(c.RPS) + " rps"
	if c.Block {
		how = " blocked"
	}
	return format.Printable(what) + how
}

// meet reports whether some name may be selected by both patterns.
func meet(a, b limiter.Pattern) bool {
	prefix := func(p limiter.Pattern) (string, bool) {
		if p == "" {
			return "", true
		}
		return strings.CutSuffix(string(p), "*")
	}
	pa, openA := prefix(a)
	pb, openB := prefix(b)
	switch {
	case openA && openB:
		return strings.HasPrefix(pa, pb) || strings.HasPrefix(pb, pa)
	case openA:
		return strings.HasPrefix(pb, pa)
	case openB:
		return strings.HasPrefix(pa, pb)
	}
	return pa == pb
}
