package overview

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"grl/policy/verdict"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

const (
	lookedAtRuns      = 5    // newest cycles in which proposals are looked for
	lookedAtProposals = 1000 // of one cycle
)

// decision is something that needs a person, ready to print.
type decision struct {
	Icon  string
	Kind  string // "due", "wait" or ""
	Lead  string // the fact
	Text  string // the rest; empty: none
	Link  page.Crumb
	At    format.Stamp
	AtAll bool // At is known
}

// alertWords are the rules as people say them.
var alertWords = map[grlv1.AlertRule]string{
	grlv1.AlertRule_ALERT_RULE_OVER_LIMIT:        "Over limit",
	grlv1.AlertRule_ALERT_RULE_SHADOW_WOULD_HURT: "Shadow would hurt",
	grlv1.AlertRule_ALERT_RULE_DIRECTIVE_STALE:   "Directive is stale",
	grlv1.AlertRule_ALERT_RULE_HOST_LOST:         "Host lost",
	grlv1.AlertRule_ALERT_RULE_RLC_REFUSED:       "RLC refused",
	grlv1.AlertRule_ALERT_RULE_AUDIT_BROKEN:      "Audit is broken",
}

// decisions are alerts that fire, a rollout that stopped, caps about to end,
// proposals that wait, and shadow that is ready, in that order, as many as there
// is room for.
func (s site) decisions(ctx context.Context, v *view, now time.Time) []decision {
	all := append(s.firing(ctx, now), stopped(s.Backend.Fleet().Rollout, now)...)
	for _, c := range v.Caps.ending {
		all = append(all, endingCap(c, now))
	}
	if len(all) < shown {
		all = append(all, s.waiting(ctx, now)...)
	}
	if d, ok := ready(v.Past, now); ok {
		all = append(all, d)
	}
	return all[:min(len(all), shown)]
}

// firing are the alerts. Those of caps that end are told with the caps.
func (s site) firing(ctx context.Context, now time.Time) []decision {
	if s.Services.Alert == nil || !page.May(ctx, grlv1connect.AlertServiceListAlertsProcedure) {
		return nil
	}
	list, err := s.Services.Alert.ListAlerts(ctx, &grlv1.ListAlertsRequest{})
	if err != nil {
		return []decision{{Icon: "alert", Kind: "due", Lead: "The alerts cannot be read now."}}
	}
	var out []decision
	for _, a := range list.GetAlerts() {
		word, known := alertWords[a.GetRule()]
		if a.GetState() != grlv1.AlertState_ALERT_STATE_FIRING || a.GetMutedUntilMs() > now.UnixMilli() || !known {
			continue
		}
		out = append(out, decision{
			Icon: "alert", Kind: "due", Lead: word + ":",
			Link: page.Crumb{Name: format.Printable(a.GetText()), Path: page.OwnPath(a.GetPath())},
			At:   format.NewStamp(time.UnixMilli(a.GetSinceMs()), now), AtAll: true,
		})
	}
	return out
}

// stopped says that a rollout stopped by itself.
func stopped(r *page.Rollout, now time.Time) []decision {
	if r == nil || !r.Stopped {
		return nil
	}
	return []decision{{
		Icon: "changes", Kind: "due", Lead: fmt.Sprintf("The rollout of r%d stopped:", r.Revision), Text: format.Sentence(format.Printable(r.Reason)),
		Link: page.Crumb{Name: "Finish or roll back", Path: "/changes"},
		At:   format.NewStamp(r.StepAt, now), AtAll: true,
	}}
}

func endingCap(c *grlv1.CapView, now time.Time) decision {
	ends := time.UnixMilli(c.GetEndsAtMs())
	minutes := int((ends.Sub(now) + time.Minute - 1) / time.Minute)
	return decision{
		Icon: "cap", Kind: "wait", Lead: "Cap ends in " + strconv.Itoa(minutes) + " min:", Text: capWords(c.GetCap()) + ".",
		Link: page.Crumb{Name: "Extend or make permanent", Path: "/caps"},
		At:   format.NewStamp(ends, now), AtAll: true,
	}
}

// waiting are the proposals of the newest cycles.
func (s site) waiting(ctx context.Context, now time.Time) []decision {
	if s.Services.RLC == nil || s.Backend.Counts().Waiting == 0 || !page.May(ctx, grlv1connect.RLCServiceListRunsProcedure) {
		return nil
	}
	runs, err := s.Services.RLC.ListRuns(ctx, &grlv1.ListRunsRequest{PageSize: lookedAtRuns})
	if err != nil {
		return []decision{{Icon: "rlc", Kind: "due", Lead: "The RLC runs cannot be read now."}}
	}
	var out []decision
	for _, r := range runs.GetRuns() {
		if n := r.GetOutcomes(); len(n) <= int(grlv1.RunOutcome_RUN_OUTCOME_PROPOSED) || n[grlv1.RunOutcome_RUN_OUTCOME_PROPOSED] == 0 {
			continue
		}
		run, err := s.Services.RLC.GetRun(ctx, &grlv1.GetRunRequest{Id: r.GetId(), Outcome: grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, PageSize: lookedAtProposals})
		if err != nil {
			continue // the next ones may be there
		}
		if d, ok := waitingRun(run, now); ok {
			out = append(out, d)
		}
	}
	return out
}

// waitingRun says how many proposals of a cycle wait; false: none.
func waitingRun(run *grlv1.GetRunResponse, now time.Time) (decision, bool) {
	wait, lower := 0, 0
	for _, r := range run.GetResults() {
		if r.GetState() != grlv1.ProposalState_PROPOSAL_STATE_PENDING {
			continue
		}
		wait++
		if r.GetBefore() != nil && r.GetAfter().GetRps() < r.GetBefore().GetRps() {
			lower++
		}
	}
	id := strconv.FormatUint(run.GetRun().GetId(), 10)
	d := decision{
		Icon: "rlc", Kind: "wait", Lead: format.Plural(wait, "limit") + " wait for approval",
		Link: page.Crumb{Name: "RLC run " + id, Path: "/rlc/run?id=" + id},
		At:   format.NewStamp(time.UnixMilli(run.GetRun().GetFinishedAtMs()), now), AtAll: run.GetRun().GetFinishedAtMs() > 0,
	}
	if wait == 1 {
		d.Lead = "1 limit waits for approval"
	}
	if lower > 0 {
		d.Text = format.Count(lower) + " of them lower"
	}
	return d, wait > 0
}

// ready says how many limits that are not enforced may be; false: none.
func ready(past *page.Past, now time.Time) (decision, bool) {
	safe := 0
	for i := range past.Evidence {
		if past.Evidence[i].Kind == verdict.Safe {
			safe++
		}
	}
	d := decision{
		Icon: "shadow", Lead: format.Plural(safe, "shadow limit") + " are safe to enforce.",
		Link: page.Crumb{Name: "See the verdicts", Path: "/shadow"},
		At:   format.NewStamp(past.At, now), AtAll: true,
	}
	if safe == 1 {
		d.Lead = "1 shadow limit is safe to enforce."
	}
	return d, safe > 0
}
