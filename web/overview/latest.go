package overview

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

const (
	latestShown   = 5
	latestRead    = 50 // entries, among which are those of people who came and went
	latestNames   = 2  // subjects that are named
	latestReason  = 80 // bytes of a reason
	latestSubject = 80
)

// latest is an entry of the audit, ready to print.
type latest struct {
	Icon     string
	Link     page.Crumb // "r1482"
	Text     string     // "payments/writes, limit"
	Old, New string     // of a single value; empty: more than that changed
	By       string
	At       format.Stamp
}

// did says what an action was, with its icon and where there is more of it.
type did struct{ icon, word, path string }

// dids are the actions, by the beginnings of their names. Those of people who come
// and go are not told.
var dids = map[string]did{
	"apply": {"changes", "Applied", "/changes"}, "rollback": {"changes", "Rolled back", "/changes"}, "promote": {"enforced", "Promoted", "/changes"},
	"rollout.finish": {"changes", "Rollout finished", "/changes"},
	"cap.place":      {"cap", "Cap placed", "/caps"}, "cap.lift": {"cap", "Cap lifted", "/caps"}, "cap.extend": {"cap", "Cap extended", "/caps"},
	"disable": {"block", "Dropping disabled", "/changes"}, "enable": {"enforced", "Dropping enabled", "/changes"},
	"rlc.run": {"rlc", "RLC run", "/rlc"}, "rlc.approve": {"rlc", "Proposals approved", "/rlc"}, "rlc.reject": {"rlc", "Proposals rejected", "/rlc"},
	"policy.apply": {"policy", "Policy changed", "/policies"}, "policy.delete": {"policy", "Policy deleted", "/policies"}, "policy.rollback": {"policy", "Policies rolled back", "/policies"},
	"alert.mute": {"alert", "Alert muted", "/alerts"}, "alert.unmute": {"alert", "Alert unmuted", "/alerts"},
	"account.put": {"access", "Account set", "/changes"}, "account.delete": {"access", "Account deleted", "/changes"},
	"token.create": {"access", "Token made", "/changes"}, "token.revoke": {"access", "Token revoked", "/changes"},
}

// latest reads the newest entries.
func (s site) latest(ctx context.Context, now time.Time) (rows []latest, problem string) {
	if s.Services.Audit == nil || !page.May(ctx, grlv1connect.AuditServiceListAuditProcedure) {
		return nil, ""
	}
	list, err := s.Services.Audit.ListAudit(ctx, &grlv1.ListAuditRequest{PageSize: latestRead})
	if err != nil {
		return nil, "The audit cannot be read now."
	}
	for _, e := range list.GetEntries() {
		if r, told := newLatest(e, now); told && len(rows) < latestShown {
			rows = append(rows, r)
		}
	}
	return rows, ""
}

// newLatest prints an entry; false: it is not told here.
func newLatest(e *grlv1.AuditEntry, now time.Time) (latest, bool) {
	action, refused := strings.CutPrefix(e.GetAction(), "refused.")
	what, told := dids[action]
	if !told {
		return latest{}, false
	}
	r := latest{Icon: what.icon, Link: page.Crumb{Name: what.word, Path: what.path}, By: format.Printable(e.GetActor()), At: format.NewStamp(time.UnixMilli(e.GetAtMs()), now)}
	if refused {
		r.Link.Name = "Refused: " + strings.ToLower(what.word[:1]) + what.word[1:]
	} else if e.GetRevision() > 0 && what.path == "/changes" {
		r.Link.Name = fmt.Sprintf("r%d", e.GetRevision())
	}
	r.Text = subjects(e.GetSubjects())
	if reason := e.GetReason(); reason != "" {
		r.Text = strings.TrimPrefix(r.Text+": "+cut(reason, latestReason), ": ")
	}
	if name, before, after := changed(e); name != "" {
		r.Text, r.Old, r.New = subjects(e.GetSubjects())+": "+name, before, after
	}
	r.Text = format.Printable(r.Text)
	return r, true
}

// subjects names the first ones, and how many more.
func subjects(all []string) string {
	var names []string
	for _, s := range all[:min(len(all), latestNames)] {
		names = append(names, cut(s, latestSubject))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - latestNames; more > 0 {
		text += " and " + format.Count(more) + " more"
	}
	return text
}

// cut returns text without what is beyond a length in bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

var (
	limitLine    = regexp.MustCompile(`(?m)\blimit:\s*\{?\s*rps:\s*([0-9.e+]+)`)
	behaviorLine = regexp.MustCompile(`(?m)\bbehavior:\s*(allow|deny)\b`)
)

// changed names the value of a bucket that an entry changed, with what it was and
// is; empty: that is not all there is to say.
func changed(e *grlv1.AuditEntry) (name, before, after string) {
	if len(e.GetSubjects()) != 1 || e.GetBefore() == "" || e.GetAfter() == "" {
		return "", "", ""
	}
	for name, line := range map[string]*regexp.Regexp{"limit": limitLine, "behavior": behaviorLine} {
		b, a := only(line, e.GetBefore()), only(line, e.GetAfter())
		if b == "" || a == "" || b == a || line.ReplaceAllString(e.GetBefore(), "") != line.ReplaceAllString(e.GetAfter(), "") {
			continue
		}
		if line == limitLine {
			b, a = rps(b), rps(a)
		}
		return name, b, a
	}
	return "", "", ""
}

// only returns the value of a line that a text has once.
func only(line *regexp.Regexp, text string) string {
	if m := line.FindAllStringSubmatch(text, 2); len(m) == 1 {
		return m[0][1]
	}
	return ""
}

func rps(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return format.RPS(v)
}
