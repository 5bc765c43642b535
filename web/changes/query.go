package changes

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/page"
)

// maxText bounds what is searched for, in bytes.
const maxText = 200

// query is what the address of the page asks for.
type query struct {
	Text     string // anywhere in an entry
	Subject  string // what was changed, or what is below it; "": anything
	Who      string // "": anyone
	What     string // value of one of the kinds; "": anything
	Since    string // value of one of the spans; "": at any time
	Revision uint64 // that it made; 0: any
	Before   uint64 // only entries below this number; 0: from the newest
	After    uint64 // only entries above this number
	Open     uint64 // entry that is shown in full; 0: none
	Done     uint64 // revision that a roll back made, to be read back; 0: none
}

// kinds are what a change may be of, by the beginning of its action.
var kinds = []struct {
	page.Choice
	actions []string
}{
	{page.Choice{Value: "limits", Name: "Limits"}, []string{"apply", "rollback", "promote", "rollout.", "rlc.adopt", "rlc.approve"}},
	{page.Choice{Value: "behavior", Name: "Behavior"}, []string{"apply", "rollback", "promote"}},
	{page.Choice{Value: "caps", Name: "Caps"}, []string{"cap.", "disable", "enable"}},
	{page.Choice{Value: "policies", Name: "Policies"}, []string{"policy."}},
	{page.Choice{Value: "rlc", Name: "RLC"}, []string{"rlc."}},
	{page.Choice{Value: "access", Name: "Access"}, []string{"login", "logout", "account.", "token.", "session.", "access.", "first"}},
	{page.Choice{Value: "alerts", Name: "Alerts"}, []string{"alert."}},
	{page.Choice{Value: "refused", Name: "Refused"}, []string{"refused."}},
}

// spans are how far back one looks.
var spans = []struct {
	page.Choice
	span time.Duration
}{
	{page.Choice{Value: "day", Name: "24 hours"}, 24 * time.Hour},
	{page.Choice{Value: "week", Name: "7 days"}, 7 * 24 * time.Hour},
	{page.Choice{Value: "month", Name: "5 weeks"}, 35 * 24 * time.Hour},
}

func parseQuery(v url.Values) query {
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(v.Get(key), 10, 64) // what is no number is none
		return n
	}
	cut := func(text string) string {
		return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	}
	q := query{
		Text: strings.TrimSpace(cut(v.Get("q"))), Subject: cut(v.Get("subject")), Who: strings.TrimSpace(cut(v.Get("who"))),
		Revision: number("revision"), Before: number("before"), After: number("after"), Open: number("open"), Done: number("done"),
	}
	for _, k := range kinds {
		if k.Value == v.Get("what") {
			q.What = k.Value
		}
	}
	for _, s := range spans {
		if s.Value == v.Get("since") {
			q.Since = s.Value
		}
	}
	return q
}

// values are the filters, without page and open entry.
func (q query) values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{"q": q.Text, "subject": q.Subject, "who": q.Who, "what": q.What, "since": q.Since} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Revision > 0 {
		v.Set("revision", strconv.FormatUint(q.Revision, 10))
	}
	return v
}

// url returns the address of the same filters at a page, with an entry open.
func (q query) url(path string, before, open uint64) string {
	v := q.values()
	if before > 0 {
		v.Set("before", strconv.FormatUint(before, 10))
	}
	if open > 0 {
		v.Set("open", strconv.FormatUint(open, 10))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// newer returns the address of what says how much these filters select above a
// number.
func (q query) newer(after uint64) string {
	v := q.values()
	v.Set("after", strconv.FormatUint(after, 10))
	return "/changes/newer?" + v.Encode()
}

// narrowed reports whether a filter is on.
func (q query) narrowed() bool { return len(q.values()) > 0 }

// begin returns from when on entries are looked at; zero: all are.
func (q query) begin(now time.Time) time.Time {
	for _, s := range spans {
		if s.Value == q.Since {
			return now.Add(-s.span)
		}
	}
	return time.Time{}
}

// selects reports whether an entry is asked for.
func (q query) selects(e *grlv1.AuditEntry) bool {
	switch {
	case q.Who != "" && e.GetActor() != q.Who,
		q.Revision > 0 && (e.GetRevision() != q.Revision || !makesRevision(e)),
		q.Subject != "" && !slices.ContainsFunc(e.GetSubjects(), q.covers),
		q.What != "" && !q.isKind(e),
		q.Text != "" && !q.mentions(e):
		return false
	}
	return true
}

// covers reports whether a subject is the one asked for, or below it.
func (q query) covers(subject string) bool {
	below, ok := strings.CutPrefix(subject, q.Subject)
	return ok && (below == "" || below[0] == '/')
}

func (q query) isKind(e *grlv1.AuditEntry) bool {
	action := e.GetAction()
	if q.What == "refused" {
		return refused(e)
	}
	for _, k := range kinds {
		if k.Value == q.What {
			of := slices.ContainsFunc(k.actions, func(a string) bool { return strings.HasPrefix(action, a) })
			return of && (q.What != "behavior" || changesBehavior(e))
		}
	}
	return false
}

// refused reports whether an entry is of what was not done.
func refused(e *grlv1.AuditEntry) bool {
	return strings.HasPrefix(e.GetAction(), "refused.") || strings.HasSuffix(e.GetAction(), ".refused")
}

// mentions reports whether an entry has the text in what the page shows of it.
func (q query) mentions(e *grlv1.AuditEntry) bool {
	for _, text := range append([]string{e.GetActor(), e.GetAction(), e.GetReason(), e.GetFrom(), revisionText(e.GetRevision())}, e.GetSubjects()...) {
		if contains(text, q.Text) {
			return true
		}
	}
	return contains(e.GetBefore(), q.Text) || contains(e.GetAfter(), q.Text)
}

// revisionText names a revision as people write it; "" for none.
func revisionText(revision uint64) string {
	if revision == 0 {
		return ""
	}
	return "r" + strconv.FormatUint(revision, 10)
}

// ofConfiguration are the actions that make a revision of the configuration.
var ofConfiguration = map[string]bool{
	"apply": true, "rollback": true, "promote": true, "rlc.adopt": true, "rlc.approve": true, "rollout.stopped": true,
}

// makesRevision reports whether an entry is of a revision of the configuration,
// not of one of the policies.
func makesRevision(e *grlv1.AuditEntry) bool {
	return e.GetRevision() > 0 && ofConfiguration[e.GetAction()]
}

// contains reports whether a text has another one in it, whatever the case.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
