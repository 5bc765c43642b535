package alerts

import (
	"net/url"
	"strconv"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// muteForm is the form to mute an alert, or to end that.
type muteForm struct {
	Rule, Subject string // as the form sends them
	Name, Text    string // of the alert, ready to print
	End           bool
	Duration      page.Field
	Reason        page.Field
}

// spans are the choices of how long, in minutes.
var spans = []page.Choice{{Value: "15", Name: "15 min"}, {Value: "60", Name: "1 h"}, {Value: "240", Name: "4 h"}, {Value: "1440", Name: "24 h"}}

// newMuteForm returns an empty form, or one as it was typed.
func newMuteForm(v url.Values) muteForm {
	f := muteForm{Rule: v.Get("rule"), Subject: v.Get("subject"), End: v.Get("end") == "yes"}
	f.Duration = page.Field{Name: "duration", Label: "For", Value: v.Get("duration")}
	if f.Duration.Value == "" {
		f.Duration.Value = "60"
	}
	f.Reason = page.Field{Name: "reason", Label: "Reason", Value: v.Get("reason"), Max: 1000, Required: true, Placeholder: "Known, being fixed"}
	if f.End {
		f.Reason.Placeholder = "Fixed"
	}
	return f
}

// asked returns the form that an address asks for, nil if it asks for none.
func asked(q url.Values) *muteForm {
	if ruleOf(q.Get("rule")) == grlv1.AlertRule_ALERT_RULE_UNSPECIFIED {
		return nil
	}
	f := newMuteForm(url.Values{"rule": q["rule"], "subject": q["subject"], "end": q["end"]})
	return &f
}

func posted(v url.Values) muteForm { return newMuteForm(v) }

// request is what the form asks for.
func (f *muteForm) request() *grlv1.MuteAlertRequest {
	r := &grlv1.MuteAlertRequest{Rule: ruleOf(f.Rule), Subject: f.Subject, Reason: f.Reason.Value}
	if f.End {
		return r
	}
	minutes, err := strconv.ParseInt(f.Duration.Value, 10, 32)
	if err != nil || minutes <= 0 {
		minutes = -1 // which is refused: 0 would end the mute
	}
	r.DurationMs = minutes * time.Minute.Milliseconds()
	return r
}

// refused says at each field what was wrong with it.
func (f *muteForm) refused(refusal *page.Refusal) {
	f.Reason.Error, f.Duration.Error = refusal.At("reason"), refusal.At("duration")
	if f.Reason.Error != "" || f.Duration.Error != "" {
		refusal.Title, refusal.Problems = "Not muted", nil
		if f.Duration.Error != "" {
			f.Duration.Error = "Choose one of these."
		}
	}
}

// named returns the form with what the alert says now.
func (f muteForm) named(answer *grlv1.ListAlertsResponse) *muteForm {
	f.Name = rules[ruleOf(f.Rule)].Name
	f.Text = format.Printable(f.Subject)
	for _, a := range answer.GetAlerts() {
		if a.GetRule() == ruleOf(f.Rule) && a.GetSubject() == f.Subject && !quiet(a) {
			f.Text = format.Printable(a.GetText())
		}
	}
	return &f
}

// title is what the form does.
func (f muteForm) title() string {
	if f.End {
		return "Unmute"
	}
	return "Mute"
}
