package changes

import (
	"context"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// view is the page, ready to print.
type view struct {
	Query    query
	Days     []day
	Checked  checked
	Done     page.Notice
	Kinds    []page.Choice
	Spans    []page.Choice
	People   []string // who acts, for the field
	Range    string   // "Entries 1,433 to 1,482"
	Newest   string   // URL; "": this is it
	Newer    string   // URL that says what came since; "": this is not the newest page
	Older    string   // URL; "": there are none
	Further  string   // what was looked through in vain; "": nothing was
	Export   string   // URL
	MayBack  bool
	Anything bool // there is an entry on this page
}

// day is the entries of one day, UTC.
type day struct {
	Name string
	Rows []row
}

// checked is what was found when the chain of the audit was last gone through.
type checked struct {
	Known   bool
	At      format.Stamp
	Entries string
	Hash    string // of the newest entry
	Broken  string // what does not hold; "": all does
}

// row is an entry.
type row struct {
	ID       string
	At       format.Stamp
	Revision string // "r1482", "cap", "refused"
	What     label
	Changes  []changed // of one bucket
	Text     string    // of anything else
	Reason   string
	Refused  bool
	Rail     string // why a guard rail refused it; "": none did
	Forced   bool
	Who      string
	From     string
	Toggle   string // URL that opens it, or closes it
	Open     *detail
	Back     string // URL of its roll back; "": there is none
	BackName string
}

// label is what an entry is about.
type label struct {
	Bucket *page.Label // one bucket; nil: something else
	Text   string
	Path   string // "": no link
}

func (s site) newView(ctx context.Context, q query, f found) view {
	now := time.Now()
	v := view{Query: q, MayBack: page.May(ctx, grlv1connect.ConfigServiceRollbackProcedure), Anything: len(f.Entries) > 0, Checked: s.checked(now), Export: q.url("/changes/export", q.Before, 0)}
	for _, k := range kinds {
		v.Kinds = append(v.Kinds, k.Choice)
	}
	for _, k := range spans {
		v.Spans = append(v.Spans, k.Choice)
	}
	if q.Revision > 0 && len(f.Entries) == 1 {
		q.Open = f.Entries[0].GetNumber() // who asks for one wants to see it
	}
	may := s.editor(ctx)
	seen := make(map[string]bool)
	for _, e := range f.Entries {
		r := newRow(now, e, q)
		if v.MayBack && makesRevision(e) && may(e) {
			r.Back = "/changes/rollback?entry=" + strconv.FormatUint(e.GetNumber(), 10)
			r.BackName = "Roll back " + revisionText(e.GetRevision())
		}
		if r.Open != nil {
			r.Open.Back, r.Open.BackName = r.Back, r.BackName
		}
		name := dayName(time.UnixMilli(e.GetAtMs()).UTC(), now.UTC())
		if n := len(v.Days); n == 0 || v.Days[n-1].Name != name {
			v.Days = append(v.Days, day{Name: name})
		}
		last := &v.Days[len(v.Days)-1]
		last.Rows = append(last.Rows, r)
		if !seen[r.Who] {
			seen[r.Who] = true
			v.People = append(v.People, r.Who)
		}
	}
	v.pages(q, f)
	return v
}

// pages leads to the neighbouring pages.
func (v *view) pages(q query, f found) {
	if n := len(f.Entries); n > 0 {
		v.Range = "Entries " + format.Count(f.Entries[n-1].GetNumber()) + " to " + format.Count(f.Entries[0].GetNumber())
	}
	if q.Before > 0 {
		v.Newest = q.url("/changes", 0, 0)
	} else {
		v.Newer = q.newer(f.Newest)
	}
	if f.Next > 0 {
		v.Older = q.url("/changes", f.Next, 0)
		if len(f.Entries) < pageRows {
			v.Further = "Looked through " + format.Plural(f.Read, "entry")
			v.Further = strings.Replace(v.Further, "entrys", "entries", 1)
		}
	}
}

// dayName is "Today, Fri 13 Mar", "Thursday, 12 Mar" or, of another year, with it.
func dayName(at, now time.Time) string {
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("Today, Mon 2 Jan")
	case at.Year() != now.Year():
		return at.Format("Monday, 2 Jan 2006")
	}
	return at.Format("Monday, 2 Jan")
}

func (s site) checked(now time.Time) checked {
	if s.Services.Audited == nil {
		return checked{}
	}
	a := s.Services.Audited()
	if a.At.IsZero() {
		return checked{}
	}
	c := checked{Known: true, At: format.NewStamp(a.At, now), Hash: hex.EncodeToString(a.Hash)}
	c.Entries = format.Count(a.Entries)
	if a.Broken > 0 {
		c.Broken = "entry " + format.Count(a.Broken) + ": " + format.Printable(a.Reason)
	}
	return c
}

// editor returns whether who looks may change all that an entry changed.
func (s site) editor(ctx context.Context) func(*grlv1.AuditEntry) bool {
	var owners map[string]string // service → owner; nil: not read yet
	return func(e *grlv1.AuditEntry) bool {
		if page.MayForce(ctx) {
			return true
		}
		if owners == nil {
			owners = make(map[string]string)
			for _, c := range s.Backend.Cells() {
				owners[c.Service] = c.Owner
			}
		}
		for _, subject := range e.GetSubjects() {
			service, _, _ := strings.Cut(subject, "/")
			if !page.MayEdit(ctx, service, owners[service]) {
				return false
			}
		}
		return len(e.GetSubjects()) > 0 // what names no bucket is not theirs
	}
}

func newRow(now time.Time, e *grlv1.AuditEntry, q query) row {
	number := e.GetNumber()
	r := row{
		ID: "e" + strconv.FormatUint(number, 10), At: format.NewStamp(time.UnixMilli(e.GetAtMs()), now),
		Revision: kindText(e), What: whatOf(e), Reason: format.Printable(e.GetReason()),
		Refused: refused(e), Rail: railText(e), Forced: e.GetForced(), Who: format.Printable(e.GetActor()), From: format.Printable(e.GetFrom()),
	}
	if (makesRevision(e) || railText(e) != "") && len(e.GetSubjects()) == 1 {
		bucket := e.GetSubjects()[0]
		r.Changes = changesOf(parsed(bucket, itemText(e.GetBefore(), bucket)), parsed(bucket, itemText(e.GetAfter(), bucket)))
	}
	if len(r.Changes) == 0 {
		r.Text = actionText(e)
	}
	if q.Open == number {
		r.Open = newDetail(e)
		r.Toggle = q.url("/changes", q.Before, 0) + "#" + r.ID
	} else {
		r.Toggle = q.url("/changes", q.Before, number) + "#" + r.ID
	}
	return r
}

// kindText is the revision that an entry made, or what kind of change it is.
func kindText(e *grlv1.AuditEntry) string {
	switch {
	case refused(e):
		return "refused"
	case makesRevision(e):
		return revisionText(e.GetRevision())
	case strings.HasPrefix(e.GetAction(), "policy.") && e.GetRevision() > 0:
		return "policies p" + strconv.FormatUint(e.GetRevision(), 10)
	}
	kind, _, _ := strings.Cut(e.GetAction(), ".")
	return format.Printable(kind)
}

// countText counts the buckets of subjects, which may have services among them.
func countText(subjects []string) string {
	buckets := 0
	for _, s := range subjects {
		if strings.Contains(s, "/") {
			buckets++
		}
	}
	if buckets == 0 {
		return format.Plural(len(subjects), "service")
	}
	if last := subjects[len(subjects)-1]; !strings.Contains(last, "/") && strings.HasPrefix(last, "and ") {
		return format.Plural(buckets, "bucket") + " " + format.Printable(last) // "and 12 more"
	}
	return format.Plural(buckets, "bucket")
}

// whatOf names what an entry is about: one thing by its name, many by their
// number.
func whatOf(e *grlv1.AuditEntry) label {
	subjects := e.GetSubjects()
	switch {
	case len(subjects) == 0:
		return label{Text: "none"}
	case ofConfiguration[strings.TrimPrefix(e.GetAction(), "refused.")]:
		if len(subjects) > 1 {
			return label{Text: countText(subjects)}
		}
		if strings.Contains(subjects[0], "/") {
			l := page.NewLabel(subjects[0], "", "", "")
			return label{Bucket: &l}
		}
	case strings.HasPrefix(e.GetAction(), "cap."):
		return label{Text: capOn(e), Path: "/caps"}
	case len(subjects) == 1:
		text := format.Printable(subjects[0])
		if name, ok := strings.CutPrefix(subjects[0], "policy "); ok {
			return label{Text: text, Path: "/policies/show?" + url.Values{"name": {name}}.Encode()}
		}
		if id, ok := strings.CutPrefix(subjects[0], "run "); ok {
			return label{Text: text, Path: "/rlc/run?" + url.Values{"id": {id}}.Encode()}
		}
		return label{Text: text}
	}
	shown := subjects[:min(len(subjects), 3)]
	text := format.Printable(strings.Join(shown, ", "))
	if more := len(subjects) - len(shown); more > 0 {
		text += " and " + format.Count(more) + " more"
	}
	return label{Text: text}
}

// toggleName says what the link at the time of an entry does.
func (r row) toggleName() string {
	if r.Open != nil {
		return "close"
	}
	return "open"
}

func (q query) subjectText() string { return format.Printable(q.Subject) }
