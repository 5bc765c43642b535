package changes

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
)

// actions are what was done, in the words of people. What is not here is shown as
// it is written.
var actions = map[string]string{
	"apply": "applied", "rollback": "rolled back", "promote": "promoted",
	"rollout.stopped": "rollout stopped, taken back", "rollout.finish": "rollout finished",
	"rlc.adopt": "computed limits", "rlc.approve": "proposals approved", "rlc.reject": "proposals rejected",
	"rlc.supersede": "proposals superseded", "rlc.request": "run asked for", "rlc.run": "run finished",
	"cap.place": "cap placed", "cap.lift": "cap lifted", "cap.extend": "cap extended",
	"disable": "all dropping stopped", "enable": "dropping again",
	"policy.apply": "policies applied", "policy.delete": "policy deleted", "policy.rollback": "policies rolled back",
	"login": "signed in", "logout": "signed out", "login.refused": "could not sign in",
	"account.put": "account set", "account.delete": "account deleted",
	"token.create": "token made", "token.revoke": "token revoked", "session.end": "session ended",
	"access.refused": "may not", "first.refused": "first account refused",
	"alert.mute": "alert muted", "alert.unmute": "alert unmuted",
}

// actionText says what was done, of a cap and what was refused with its figures.
func actionText(e *grlv1.AuditEntry) string {
	action := e.GetAction()
	if text := capText(e); text != "" {
		return text
	}
	text := actions[action]
	if text == "" {
		text = format.Printable(action)
	}
	if refused(e) && e.GetAfter() != "" && railText(e) == "" {
		text += ": " + format.Printable(clip(e.GetAfter()))
	}
	return text
}

// railMark begins the lines of an entry that say why a guard rail refused it.
const railMark = "# refused: "

// railText says why guard rails refused a change: the first reason, "" if none
// did.
func railText(e *grlv1.AuditEntry) string {
	text, ok := strings.CutPrefix(e.GetAfter(), railMark)
	if !refused(e) || !ok {
		return ""
	}
	text, rest, _ := strings.Cut(text, "\n")
	if len(e.GetSubjects()) == 1 {
		text = strings.TrimPrefix(text, e.GetSubjects()[0]+" ")
	}
	text = format.Printable(clip(text))
	if more := strings.Count("\n"+rest, "\n"+railMark); more > 0 {
		text += " and " + format.Plural(more, "more reason")
	}
	return text
}

// clip shortens what is in one cell of the table.
func clip(text string) string {
	const most = 160 // runes
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// aCap is what the audit says of a cap.
type aCap struct {
	Service   string    `json:"service"`
	Caller    string    `json:"caller"`
	Procedure string    `json:"procedure"`
	RPS       float64   `json:"rps"`
	Block     bool      `json:"block"`
	EndsAt    time.Time `json:"ends_at"`
}

// capText says what an entry did to a cap: "cap none → 400 rps until 21:49 UTC";
// "": it is of no cap.
func capText(e *grlv1.AuditEntry) string {
	switch e.GetAction() {
	case "cap.place":
		return "cap none → " + capValue(e.GetAfter())
	case "cap.lift":
		return "cap " + capValue(e.GetBefore()) + " → lifted"
	case "cap.extend":
		return "cap " + capValue(e.GetBefore()) + " → " + capValue(e.GetAfter())
	}
	return ""
}

// capOn is what a cap is on: "promo-batch → payments".
func capOn(e *grlv1.AuditEntry) string {
	var c aCap
	for _, text := range []string{e.GetAfter(), e.GetBefore()} {
		if err := json.Unmarshal([]byte(text), &c); err == nil && c.Service != "" {
			on := cmp.Or(c.Caller, "*") + " → " + c.Service
			if c.Procedure != "" {
				on += ", " + c.Procedure
			}
			return format.Printable(on)
		}
	}
	return format.Printable(strings.Join(e.GetSubjects(), ", "))
}

func capValue(text string) string {
	var c aCap
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Service == "" {
		return "unknown"
	}
	value := format.RPS(c.RPS) + " rps"
	if c.Block {
		value = "block"
	}
	return value + " until " + c.EndsAt.UTC().Format("15:04 UTC")
}
