package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

func rlcShow(call *calling) *cobra.Command {
	var bucket, outcome string
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show what a run found of each bucket",
		Long: `Show a run, and what it found of each bucket whose limit is not right as it is;
--outcome chooses others. --bucket shows one bucket with the numbers behind its limit,
and what the guard rails say.`,
		Example: "  grl rlc show 812 --outcome proposed\n  grl rlc show 812 --bucket payments/checkout",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := parseRun(args[0])
			if err != nil {
				return err
			}
			o, err := parseOutcome(outcome)
			if err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			return showRun(cmd, call, conn, &grlv1.GetRunRequest{Id: run, Outcome: o, Bucket: bucket})
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&bucket, "bucket", "", "only this bucket, by its full `name`")
	cmd.Flags().StringVar(&outcome, "outcome", "", "only results with this outcome: "+strings.Join(outcomeWords(), ", "))
	return cmd
}

// showRun prints a run with the results that the request selects. A run that
// failed ends grl with an error.
func showRun(cmd *cobra.Command, call *calling, conn *remote.Conn, r *grlv1.GetRunRequest) error {
	all, err := allResults(cmd, conn, r)
	if err != nil {
		return err
	}
	if err := call.print(cmd.OutOrStdout(), all, func() string { return runText(all, r) }); err != nil {
		return err
	}
	if all.GetRun().GetState() == grlv1.Run_STATE_FAILED {
		return errors.New(terminal.Printable("the run failed: " + dash(all.GetRun().GetError())))
	}
	if r.GetBucket() != "" && len(all.GetResults()) == 0 {
		return fmt.Errorf("run %d has no such result of bucket %q", r.GetId(), r.GetBucket())
	}
	return nil
}

// allResults returns all pages of a run in one.
func allResults(cmd *cobra.Command, conn *remote.Conn, r *grlv1.GetRunRequest) (*grlv1.GetRunResponse, error) {
	page := proto.CloneOf(r)
	page.PageSize = mostRows
	all := &grlv1.GetRunResponse{}
	for {
		answer, err := conn.RLC.GetRun(remote.WithTimeout(cmd.Context(), applyTimeout), page)
		if err != nil {
			return nil, err
		}
		all.Run, all.Total = answer.GetRun(), answer.GetTotal()
		all.Results = append(all.Results, answer.GetResults()...)
		page.Offset = uint32(len(all.Results))
		if len(answer.GetResults()) == 0 || page.GetOffset() >= answer.GetTotal() {
			return all, nil
		}
	}
}

// runText shows a run and its results.
func runText(all *grlv1.GetRunResponse, r *grlv1.GetRunRequest) string {
	var b strings.Builder
	b.WriteString(runHead(all.GetRun()))
	if r.GetBucket() != "" {
		for _, result := range all.GetResults() {
			b.WriteString("\n" + resultText(result))
		}
		return terminal.Printable(b.String())
	}
	t := terminal.Table{Columns: []string{"bucket", "policy", "outcome", ">before", ">after", "reason"}}
	for _, result := range all.GetResults() {
		// What is right as it is says little, unless it is asked for.
		if result.GetOutcome() == grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED && r.GetOutcome() == grlv1.RunOutcome_RUN_OUTCOME_UNSPECIFIED {
			continue
		}
		t.Add(result.GetBucket(), result.GetPolicy(), outcomeAndState(result), computedText(result.GetBefore()), computedText(result.GetAfter()), result.GetReason())
	}
	if len(t.Rows) > 0 {
		b.WriteString("\n" + t.String())
	}
	return terminal.Printable(b.String())
}

// runHead says what a run was, in a few lines.
func runHead(r *grlv1.Run) string {
	text := fmt.Sprintf("run %d at %s: %s", r.GetId(), moment(r.GetStartedAtMs()), runState(r))
	if r.GetError() != "" {
		text += ": " + r.GetError()
	}
	text += fmt.Sprintf("\ntrigger %s", dash(r.GetTrigger()))
	if r.GetAuthor() != "" {
		text += " by " + r.GetAuthor()
	}
	text += fmt.Sprintf(", history from %s, policies r%d, limits r%d\n", dash(r.GetSource()), r.GetPolicyRevision(), r.GetBaseRevision())
	if outcomes := outcomesText(r.GetOutcomes()); outcomes != "" {
		text += count(int(r.GetBuckets()), "bucket") + ": " + outcomes + "\n"
	}
	if r.GetRevision() > 0 {
		text += fmt.Sprintf("made r%d: %s\n", r.GetRevision(), dash(r.GetVerified()))
	}
	if r.GetCommit() != "" {
		text += "commit " + shortHash(r.GetCommit()) + "\n"
	}
	return text
}

// outcomeAndState is what became of a result, and of the proposal that it is.
func outcomeAndState(r *grlv1.RunResult) string {
	word := outcomeWord(r.GetOutcome())
	switch r.GetState() {
	case grlv1.ProposalState_PROPOSAL_STATE_APPROVED:
		return word + ", approved"
	case grlv1.ProposalState_PROPOSAL_STATE_REJECTED:
		return word + ", rejected"
	case grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED:
		return word + ", superseded"
	default:
		if r.GetRefused() != "" {
			word += ": " + r.GetRefused()
		}
		return word
	}
}

// computedText is a limit in a few words: "12,000", "14,000 by hour, candidate
// 9,000".
func computedText(l *grlv1.ComputedLimit) string {
	if l == nil {
		return "-"
	}
	text := limitText(l.GetRps())
	if len(l.GetHourlyRps()) > 0 || len(l.GetRegionsHourly()) > 0 {
		text += " by hour"
	}
	for _, region := range slices.Sorted(maps.Keys(l.GetRegionsRps())) {
		text += ", " + region + " " + limitText(l.GetRegionsRps()[region])
	}
	if l.GetCandidateRps() > 0 {
		text += ", candidate " + limitText(l.GetCandidateRps())
	}
	return text
}

// figureText writes a figure with four digits at most, more only of what is
// large.
func figureText(v float64) string {
	if math.Abs(v) >= 1000 {
		return thousands(strconv.FormatFloat(math.Round(v), 'f', -1, 64))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// resultText shows one result with what is behind it.
func resultText(r *grlv1.RunResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s by policy %s (%s, %s)\n", r.GetBucket(), outcomeAndState(r), dash(r.GetPolicy()), dash(r.GetKind()), modeText(r.GetMode()))
	if change := fmt.Sprintf("%s → %s rps", computedText(r.GetBefore()), computedText(r.GetAfter())); !strings.HasPrefix(r.GetReason(), change) {
		b.WriteString(change + "\n")
	}
	if r.GetReason() != "" {
		b.WriteString(r.GetReason() + "\n")
	}
	b.WriteString(hourlyText(r.GetAfter()))
	for _, n := range r.GetNumbers() {
		fmt.Fprintf(&b, "  %-24s  %s\n", n.GetName(), strings.TrimSpace(figureText(n.GetValue())+" "+n.GetUnit()))
	}
	for _, f := range r.GetFindings() {
		b.WriteString(remote.FindingText(f, false) + "\n")
	}
	if r.GetDecidedBy() != "" {
		fmt.Fprintf(&b, "decided by %s at %s\n", r.GetDecidedBy(), moment(r.GetDecidedAtMs()))
	}
	if r.GetRevision() > 0 {
		fmt.Fprintf(&b, "in r%d\n", r.GetRevision())
	}
	if r.GetNewBucket() != "" {
		b.WriteString("a new bucket:\n" + r.GetNewBucket() + "\n")
	}
	return b.String()
}

// hourlyText lists the limits by the hour of the day, six a line.
func hourlyText(l *grlv1.ComputedLimit) string {
	hourly := l.GetHourlyRps()
	if len(hourly) == 0 {
		return ""
	}
	text := "by the hour, in " + cmp.Or(l.GetTimeZone(), "UTC") + ":\n"
	for from := 0; from < len(hourly); from += 6 {
		text += fmt.Sprintf("  %02d:00", from)
		for _, rps := range hourly[from:min(from+6, len(hourly))] {
			text += fmt.Sprintf(" %9s", limitText(rps))
		}
		text += "\n"
	}
	return text
}
