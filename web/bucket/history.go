package bucket

import (
	"context"
	"strings"
	"time"

	"github.com/a-h/templ"

	"grl/limiter"
	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
)

// historyView is who did what to the bucket.
type historyView struct {
	All    string // the page of all of it
	Rows   []event
	Policy governed
}

// event is one entry of the audit.
type event struct {
	Icon string
	Name string // r1479; "": it made no revision
	Path string
	Text string
	Who  string
	At   format.Stamp
}

const shownEvents = 8

func (s site) history(ctx context.Context, q query, b *limiter.Bucket) (templ.Component, error) {
	v := historyView{All: changesPath(q.bucket())}
	var err error
	if v.Policy, err = s.governed(ctx, b); err != nil {
		return nil, err
	}
	if s.Services.Audit == nil {
		return historyCard(v), nil
	}
	got, err := s.Services.Audit.ListAudit(ctx, &grlv1.ListAuditRequest{Subject: q.bucket(), PageSize: shownEvents})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, e := range got.GetEntries() {
		was, is := itemOf(q, e.GetBefore()), itemOf(q, e.GetAfter())
		row := event{
			Icon: "changes", Text: format.Printable(e.GetAction()), Who: format.Printable(e.GetActor()),
			At: format.NewStamp(time.UnixMilli(e.GetAtMs()), now),
		}
		if e.GetRevision() != 0 {
			row.Name, row.Path = "r"+format.Count(e.GetRevision()), revisionPath(e.GetRevision())
			row.Name = strings.ReplaceAll(row.Name, ",", "")
		}
		if was != nil || is != nil {
			row.Icon, row.Text = eventText(was, is)
		}
		if strings.HasPrefix(e.GetAction(), "refused.") {
			row.Icon, row.Text = "block", "refused: "+row.Text
		}
		v.Rows = append(v.Rows, row)
	}
	return historyCard(v), nil
}

// itemOf finds the bucket in the text of an audit entry, which has several; nil:
// it is not there, or was cut off.
func itemOf(q query, text string) *limiter.Bucket {
	_, rest, found := strings.Cut("\n"+text, "\n# "+q.bucket()+"\n")
	if !found {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "\n# ")
	return parsed(q, rest)
}

// eventText says how a bucket was changed, and its icon.
func eventText(was, is *limiter.Bucket) (icon, text string) {
	switch {
	case was == nil && is.Behavior == limiter.Deny:
		return "plus", "created, " + limitWords(is)
	case was == nil:
		return "plus", "created in shadow, " + limitWords(is)
	case is == nil:
		return "x", "removed"
	}
	var parts []string
	if a, b := limitWords(was), limitWords(is); a != b {
		parts = append(parts, "limit "+strings.TrimSuffix(a, " rps")+" → "+b)
	}
	if a, b := candidateWords(was), candidateWords(is); a != b {
		parts = append(parts, "candidate "+strings.TrimSuffix(a, " rps")+" → "+b)
	}
	icon = "changes"
	if was.Behavior != is.Behavior {
		parts = append(parts, behaviorText(was.Behavior)+" → "+behaviorText(is.Behavior))
		if is.Behavior == limiter.Deny {
			icon = "enforced"
		}
	}
	if len(parts) == 0 {
		if limitsfile.BucketText(was) == limitsfile.BucketText(is) {
			return icon, "as it was"
		}
		return icon, "changed otherwise"
	}
	return icon, strings.Join(parts, ", ")
}
