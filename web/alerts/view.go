package alerts

import (
	"net/url"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// shownAlerts is how many alerts the page has: what fires first. A rule may have
// a thousand.
const shownAlerts = 200

// view is the page, ready to print.
type view struct {
	Rows    []row
	LeftOut string // "and 304 more", "": none
	Firing  int    // that are not muted, but for caps about to end
	May     bool   // mute
	Ask     *muteForm
	Done    page.Notice // what became of a mute; no title: nothing
	Refusal page.Refusal

	Webhook, Problem string // "" each: none
}

// row is an alert.
type row struct {
	ID      string // of the row, so that it keeps its place
	Kind    string // of the state
	Icon    string
	State   string
	Name    string
	Text    string
	Path    string
	Last    format.Stamp // of a quiet one: when it fired; zero: never
	Quiet   bool
	Bound   string
	Since   format.Stamp // zero: quiet
	Muted   format.Stamp // until when; zero: it is not
	MutedBy string
	Act     string // address of the form to mute it, or to end that; "": none
	ActName string
}

// described is what the page calls a rule.
type described struct{ Word, Name, Bound string }

var rules = map[grlv1.AlertRule]described{
	grlv1.AlertRule_ALERT_RULE_OVER_LIMIT:        {"over_limit", "Over limit", "> 1% for 5 min"},
	grlv1.AlertRule_ALERT_RULE_HOST_LOST:         {"host_lost", "Host lost", "> 10 s"},
	grlv1.AlertRule_ALERT_RULE_DIRECTIVE_STALE:   {"directive_stale", "Directive stale", "> 5 s"},
	grlv1.AlertRule_ALERT_RULE_CAP_ENDING:        {"cap_ending", "Cap about to end", "< 10 min"},
	grlv1.AlertRule_ALERT_RULE_SHADOW_WOULD_HURT: {"shadow_would_hurt", "Shadow would hurt", "> 1% in a day"},
	grlv1.AlertRule_ALERT_RULE_RLC_REFUSED:       {"rlc_refused", "RLC refused", "any"},
	grlv1.AlertRule_ALERT_RULE_AUDIT_BROKEN:      {"audit_broken", "Audit broken", "any"},
}

// ruleOf returns the rule of a word of an address or form; UNSPECIFIED if there
// is none.
func ruleOf(word string) grlv1.AlertRule {
	for rule, d := range rules {
		if d.Word == word {
			return rule
		}
	}
	return grlv1.AlertRule_ALERT_RULE_UNSPECIFIED
}

func newView(answer *grlv1.ListAlertsResponse, may bool) view {
	now := time.Now()
	v := view{May: may, Webhook: format.Printable(answer.GetWebhook()), Problem: format.Sentence(format.Printable(answer.GetWebhookProblem()))}
	all := answer.GetAlerts()
	for _, a := range all {
		if firing(a) && a.GetMutedUntilMs() == 0 && a.GetRule() != grlv1.AlertRule_ALERT_RULE_CAP_ENDING {
			v.Firing++
		}
	}
	for _, a := range shown(all) {
		v.Rows = append(v.Rows, newRow(now, a, may))
	}
	if n := len(all) - len(v.Rows); n > 0 {
		v.LeftOut = "and " + format.Count(n) + " more that fire or are pending"
	}
	return v
}

func firing(a *grlv1.Alert) bool { return a.GetState() == grlv1.AlertState_ALERT_STATE_FIRING }

func quiet(a *grlv1.Alert) bool { return a.GetState() == grlv1.AlertState_ALERT_STATE_QUIET }

// shown returns the first alerts, and all rules that are quiet.
func shown(all []*grlv1.Alert) []*grlv1.Alert {
	if len(all) <= shownAlerts {
		return all
	}
	out := all[:shownAlerts:shownAlerts]
	for _, a := range all[shownAlerts:] {
		if quiet(a) {
			out = append(out, a)
		}
	}
	return out
}

func newRow(now time.Time, a *grlv1.Alert, may bool) row {
	d := rules[a.GetRule()]
	r := row{
		ID: d.Word + "-" + url.QueryEscape(a.GetSubject()), Name: d.Name, Bound: d.Bound, Quiet: quiet(a),
		Text: format.Printable(a.GetText()), Path: page.OwnPath(a.GetPath()),
	}
	r.Kind, r.Icon, r.State = stateOf(a)
	if since := a.GetSinceMs(); since > 0 && r.Quiet {
		r.Last = format.NewStamp(time.UnixMilli(since), now)
	} else if since > 0 {
		r.Since = format.NewStamp(time.UnixMilli(since), now)
	}
	address := url.Values{"rule": {d.Word}, "subject": {a.GetSubject()}}
	if until := a.GetMutedUntilMs(); until > 0 {
		r.Muted, r.MutedBy = format.NewStamp(time.UnixMilli(until), now), format.Printable(a.GetMutedBy())
		address.Set("end", "yes")
		r.ActName = "Unmute"
	} else if !r.Quiet {
		r.ActName = "Mute 1 h"
	}
	if may && r.ActName != "" {
		r.Act = "/alerts?" + address.Encode() + "#mute"
	}
	return r
}

// stateOf returns class, icon and word of a state. A cap about to end is no fault:
// it is told in time.
func stateOf(a *grlv1.Alert) (kind, icon, word string) {
	switch {
	case quiet(a):
		return "plain", "ok", "Quiet"
	case a.GetMutedUntilMs() > 0:
		return "plain", "clock", "Muted"
	case !firing(a):
		return "waiting", "clock", "Pending"
	case a.GetRule() == grlv1.AlertRule_ALERT_RULE_CAP_ENDING:
		return "waiting", "clock", "Soon"
	}
	return "over", "alert", "Firing"
}

// windowTitle is that of the browser's window, so that a tab tells the state.
func (v view) windowTitle() string {
	if v.Firing == 0 {
		return "Alerts"
	}
	return format.Plural(v.Firing, "alert") + " firing"
}

// done says what became of a mute, by what is so now.
func (v view) done(answer *grlv1.ListAlertsResponse, q url.Values) page.Notice {
	rule := ruleOf(q.Get("done"))
	if rule == grlv1.AlertRule_ALERT_RULE_UNSPECIFIED {
		return page.Notice{}
	}
	name := rules[rule].Name
	subject := format.Printable(q.Get("of"))
	if subject != "" {
		name += " of " + subject
	}
	for _, a := range answer.GetAlerts() {
		if a.GetRule() == rule && a.GetSubject() == q.Get("of") {
			if until := a.GetMutedUntilMs(); until > 0 {
				return page.Notice{Kind: "good", Title: "Muted: " + name, Text: "It is not sent, and not counted, until " + format.Moment(until) + "."}
			}
			return page.Notice{Kind: "good", Title: "Not muted: " + name}
		}
	}
	return page.Notice{Kind: "good", Title: "It is quiet now: " + name}
}
