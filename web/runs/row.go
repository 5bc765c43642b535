package runs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	grlv1 "grl/proto/grl/v1"
	"grl/web/chart"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// row is one result, ready to print.
type row struct {
	Bucket, Service, Name, Path string
	ID                          string // of its tick box
	May                         bool   // it can be chosen
	Ticked                      bool
	Spark                       chart.Sparkline
	HasSpark                    bool
	Old, New                    string
	Beside                      string // what of the new limit is not in New
	Change, Headroom            string
	Short                       string // the sentence without its figures before and after, and what follows
	Reason, Refused             string
	Policy, PolicyPath          string
	State                       string // what became of a proposal
	StateKind, StateIcon        string
	Guard                       []string
	Numbers                     []fact
	Hours                       []fact
	Diff                        []diff.Line
	DiffTitle                   string
}

func newRow(m *grlv1.RunResult, i int) row {
	service, name, _ := strings.Cut(m.GetBucket(), "/")
	r := row{
		Bucket: m.GetBucket(), Service: format.Printable(service), Name: format.Printable(name), ID: "pick-" + strconv.Itoa(i),
		Path: page.BucketPath(m.GetBucket(), "", ""), Old: rpsText(m.GetBefore()), New: rpsText(m.GetAfter()), Beside: besideText(m.GetAfter()),
		Change: changeText(m), Headroom: headroomText(m), Short: short(m.GetReason()), Reason: format.Printable(m.GetReason()), Refused: refusedText(m.GetRefused()),
		Policy: format.Printable(m.GetPolicy()), PolicyPath: policyPath(m.GetPolicy()), Diff: committed(m), DiffTitle: service + ".yaml",
	}
	if m.GetNewBucket() != "" {
		r.Path = "" // there is no page of it yet
	}
	r.StateKind, r.StateIcon, r.State = stateOfResult(m)
	if _, known := highest(m.GetDailyPeaks()); known {
		r.HasSpark = true
		r.Spark = sparkOf(m)
	}
	for _, f := range m.GetFindings()[:min(len(m.GetFindings()), mostFindings)] {
		r.Guard = append(r.Guard, format.Printable(f.GetText()))
	}
	for _, n := range m.GetNumbers()[:min(len(m.GetNumbers()), mostNumbers)] {
		r.Numbers = append(r.Numbers, fact{Name: format.Printable(strings.ReplaceAll(n.GetName(), "_", " ")), Value: numberText(n)})
	}
	for h, rps := range m.GetAfter().GetHourlyRps() {
		r.Hours = append(r.Hours, fact{Name: fmt.Sprintf("%02d:00", h), Value: format.RPS(rps)})
	}
	return r
}

// What of one result is printed at most.
const (
	mostFindings = 5
	mostNumbers  = 20
)

// sparkOf draws the highest minute of each day with the limit before and after.
func sparkOf(m *grlv1.RunResult) chart.Sparkline {
	s := chart.Sparkline{LimitRPS: limitOf(m), Before: m.GetBefore().GetRps(), Shadow: judges(m)}
	for _, p := range m.GetDailyPeaks() {
		if p < 0 {
			s.Values = append(s.Values, math.NaN())
		} else {
			s.Values = append(s.Values, float64(p))
		}
	}
	peak, _ := highest(m.GetDailyPeaks())
	s.Label = "Highest minute of each of " + format.Plural(len(m.GetDailyPeaks()), "day") + ", at most " + format.RPS(peak) +
		" rps, with the old limit " + format.RPS(s.Before) + " and the new one " + format.RPS(s.LimitRPS)
	return s
}

// stateOfResult says what became of a result, in a word with its shape.
func stateOfResult(m *grlv1.RunResult) (kind, icon, word string) {
	in := ""
	if m.GetRevision() > 0 {
		in = fmt.Sprintf(" in r%d", m.GetRevision())
	}
	by := ""
	if m.GetDecidedBy() != "" {
		by = " by " + format.Printable(m.GetDecidedBy())
	}
	switch m.GetState() {
	case grlv1.ProposalState_PROPOSAL_STATE_PENDING:
		return "waiting", "clock", "Waits"
	case grlv1.ProposalState_PROPOSAL_STATE_APPROVED:
		return "good", "ok", "Approved" + by + in
	case grlv1.ProposalState_PROPOSAL_STATE_REJECTED:
		return "plain", "block", "Rejected" + by
	case grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED:
		return "plain", "clock", "Superseded"
	}
	switch m.GetOutcome() {
	case grlv1.RunOutcome_RUN_OUTCOME_APPLIED, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED:
		return "good", "ok", strings.ToUpper(outcomeName(m.GetOutcome())[:1]) + outcomeName(m.GetOutcome())[1:] + in
	}
	return "", "", ""
}

// numberText prints a figure behind a limit.
func numberText(n *grlv1.RunNumber) string {
	switch n.GetUnit() {
	case "rps":
		return format.RPS(n.GetValue()) + " rps"
	case "days":
		return strconv.FormatFloat(n.GetValue(), 'f', 1, 64) + " days"
	}
	return strconv.FormatFloat(n.GetValue(), 'g', 4, 64)
}
