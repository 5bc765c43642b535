package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

// RLC returns the command that shows what the configurator computed, and takes
// what people decide of it.
func RLC() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "rlc",
		Short: "See and decide on the limits that the configurator computes",
		Long: `See what the configurator, which computes limits from what was offered in the past,
has found; ask it for a cycle; approve or reject what it proposes.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return wrongUse(errors.New("name what to do: run, runs, show, approve, reject or status"))
		},
	}
	call.connects(cmd)
	cmd.AddCommand(rlcRun(&call), rlcRuns(&call), rlcShow(&call), rlcApprove(&call), rlcReject(&call), rlcStatus(&call))
	return cmd
}

func rlcRuns(call *calling) *cobra.Command {
	request := &grlv1.ListRunsRequest{}
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the cycles of the configurator, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := conn.RLC.ListRuns(cmd.Context(), request)
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string { return runTable(list.GetRuns()) })
		},
	}
	call.prints(cmd)
	cmd.Flags().Uint32Var(&request.PageSize, "limit", 20, "at most so many, 1 to 200")
	cmd.Flags().Uint64Var(&request.Before, "before", 0, "only those below this `run`")
	return cmd
}

func runTable(runs []*grlv1.Run) string {
	if len(runs) == 0 {
		return "no runs\n"
	}
	t := terminal.Table{Columns: []string{">run", "at", "took", "trigger", "by", "source", "state", ">buckets", "outcomes", "revision"}}
	for _, r := range runs {
		took := "-"
		if r.GetFinishedAtMs() > 0 {
			took = span(milliseconds(r.GetFinishedAtMs() - r.GetStartedAtMs()))
		}
		revision := "-"
		if r.GetRevision() > 0 {
			revision = "r" + countText(r.GetRevision())
		}
		t.Add(countText(r.GetId()), moment(r.GetStartedAtMs()), took, dash(r.GetTrigger()), dash(r.GetAuthor()), dash(r.GetSource()),
			runState(r), countText(r.GetBuckets()), dash(outcomesText(r.GetOutcomes())), revision)
	}
	return t.String()
}

func runState(r *grlv1.Run) string {
	switch r.GetState() {
	case grlv1.Run_STATE_RUNNING:
		return fmt.Sprintf("running, %d of %d", r.GetDone(), r.GetBuckets())
	case grlv1.Run_STATE_FAILED:
		return "failed"
	case grlv1.Run_STATE_DONE:
		if r.GetDryRun() {
			return "dry run"
		}
		return "done"
	default:
		return "-"
	}
}

// outcomeWord is the word for an outcome, such as "applied".
func outcomeWord(o grlv1.RunOutcome) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "RUN_OUTCOME_"))
}

// outcomeWords are those that --outcome takes, in the order of their numbers.
func outcomeWords() (words []string) {
	for o := grlv1.RunOutcome(1); grlv1.RunOutcome_name[int32(o)] != ""; o++ {
		words = append(words, outcomeWord(o))
	}
	return words
}

// parseOutcome reads a word; "" is any outcome.
func parseOutcome(word string) (grlv1.RunOutcome, error) {
	if word == "" {
		return grlv1.RunOutcome_RUN_OUTCOME_UNSPECIFIED, nil
	}
	for i, w := range outcomeWords() {
		if w == word {
			return grlv1.RunOutcome(i + 1), nil
		}
	}
	return 0, wrongUse(fmt.Errorf("--outcome %q: want one of %s", word, strings.Join(outcomeWords(), ", ")))
}

// outcomesText returns "2 proposed, 10 unchanged", what was changed first.
func outcomesText(counts []uint32) string {
	var parts []string
	for i, n := range counts {
		if o := grlv1.RunOutcome(i); n > 0 && o != grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcomeWord(o)))
		}
	}
	if unchanged := int(grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED); len(counts) > unchanged && counts[unchanged] > 0 {
		parts = append(parts, fmt.Sprintf("%d unchanged", counts[unchanged]))
	}
	return strings.Join(parts, ", ")
}

// parseRun reads the number of a run.
func parseRun(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, wrongUse(fmt.Errorf("%q is no number of a run: grl rlc runs lists them", text))
	}
	return n, nil
}

// decideFlags say what to decide of.
type decideFlags struct {
	all, force bool
	reason     string
}

func (f *decideFlags) request(args []string, approve bool) (*grlv1.DecideProposalsRequest, error) {
	run, err := parseRun(args[0])
	if err != nil {
		return nil, err
	}
	switch buckets := args[1:]; {
	case f.all == (len(buckets) > 0):
		return nil, wrongUse(errors.New("say which: name buckets, as SERVICE/BUCKET, or --all that wait"))
	case f.reason == "":
		return nil, needReason(f.reason)
	default:
		return &grlv1.DecideProposalsRequest{Run: run, Buckets: buckets, Approve: approve, Force: f.force, Reason: f.reason}, nil
	}
}

func rlcApprove(call *calling) *cobra.Command {
	var f decideFlags
	cmd := &cobra.Command{
		Use:   "approve RUN (SERVICE/BUCKET... | --all) --reason TEXT",
		Short: "Make what a run proposes the limits",
		Long: `Make what a run proposes of these buckets, or of all that wait, the limits. The guard
rails hold as for grl apply: --force passes them, and takes an account with role admin.
A bucket that was changed meanwhile is left as it is.`,
		Example: `  grl rlc approve 812 payments/checkout --reason "as agreed with ann"`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := f.request(args, true)
			if err != nil {
				return err
			}
			return decide(cmd, call, request, "approved")
		},
	}
	f.add(cmd, call)
	cmd.Flags().BoolVar(&f.force, "force", false, "pass the guard rails")
	return cmd
}

func rlcReject(call *calling) *cobra.Command {
	var f decideFlags
	cmd := &cobra.Command{
		Use:   "reject RUN (SERVICE/BUCKET... | --all) --reason TEXT",
		Short: "Decide against what a run proposes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := f.request(args, false)
			if err != nil {
				return err
			}
			return decide(cmd, call, request, "rejected")
		},
	}
	f.add(cmd, call)
	return cmd
}

func (f *decideFlags) add(cmd *cobra.Command, call *calling) {
	call.prints(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all of the run that wait")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit")
}

func decide(cmd *cobra.Command, call *calling, r *grlv1.DecideProposalsRequest, done string) error {
	conn, err := call.dial(cmd)
	if err != nil {
		return err
	}
	answer, err := conn.RLC.DecideProposals(remote.WithTimeout(cmd.Context(), applyTimeout), r)
	if err != nil {
		return err
	}
	return call.print(cmd.OutOrStdout(), answer, func() string {
		said := done + " " + count(int(answer.GetDecided()), "proposal") + " of run " + countText(r.GetRun())
		text := said + "\n"
		if r.GetApprove() && answer.GetDecided() > 0 {
			text = outcomeText(answer.GetOutcome(), false, said+":")
		}
		for _, bucket := range answer.GetSuperseded() {
			text += terminal.Printable("left as it is: " + bucket + " was changed meanwhile, or a later run proposes otherwise\n")
		}
		return text
	})
}

func rlcStatus(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the configurator: where its history comes from, and whether the limits repository is in step",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			c, err := conn.RLC.GetConfigurator(cmd.Context(), &grlv1.GetConfiguratorRequest{})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), c, func() string { return configuratorText(c) })
		},
	}
	call.prints(cmd)
	return cmd
}

// configuratorText shows a configurator, a line for each thing.
func configuratorText(c *grlv1.GetConfiguratorResponse) string {
	s := c.GetStatus()
	if c.GetHolder() == "" {
		return nobodyAttends + "\n"
	}
	lines := [][2]string{{"configurator", c.GetHolder() + ", last heard of at " + moment(c.GetSeenAtMs())}}
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, [2]string{name, text})
		}
	}
	if c.GetAbsent() {
		add("state", "silent: no cycle runs until one is back")
	}
	add("version", s.GetVersion())
	add("source", s.GetSource())
	add("repository", repositoryText(s))
	add("problem", s.GetRepositoryProblem())
	if s.GetRun() > 0 {
		add("run", fmt.Sprintf("%d, %d of %s", s.GetRun(), s.GetDone(), count(int(s.GetBuckets()), "bucket")))
	}
	if s.GetNextAtMs() > 0 {
		add("next cycle", moment(s.GetNextAtMs()))
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%-12s  %s\n", l[0], l[1])
	}
	conflicts := s.GetConflicts()
	for _, conflict := range conflicts[:min(mostConflicts, len(conflicts))] {
		b.WriteString("\n" + remote.ConflictText(conflict) + "\n")
	}
	if more := len(conflicts) - mostConflicts; more > 0 {
		fmt.Fprintf(&b, "\nand %s more; -o json has them\n", count(more, "conflict"))
	}
	return terminal.Printable(b.String())
}

// mostConflicts bounds the conflicts that are printed.
const mostConflicts = 10

const nobodyAttends = "no configurator attends: grl serve --role configurator is one"

// repositoryText names the limits repository and what of it holds; "" without
// one.
func repositoryText(s *grlv1.ConfiguratorStatus) string {
	if s.GetRepository() == "" {
		return ""
	}
	text := s.GetRepository()
	if s.GetCommit() != "" {
		text += " at " + shortHash(s.GetCommit())
	}
	if s.GetSyncedAtMs() > 0 {
		text += ", in step at " + moment(s.GetSyncedAtMs())
	}
	return text
}

// shortHash returns the first digits of a commit.
func shortHash(commit string) string { return commit[:min(len(commit), 12)] }

// configuratorLine says in one line who the configurator is; "" if there never
// was one.
func configuratorLine(c *grlv1.GetConfiguratorResponse) string {
	s := c.GetStatus()
	if c.GetHolder() == "" {
		return ""
	}
	text := "configurator " + c.GetHolder()
	switch {
	case c.GetAbsent():
		return text + " is silent since " + moment(c.GetSeenAtMs())
	case s.GetRun() > 0:
		text += fmt.Sprintf(": run %d, %d of %s", s.GetRun(), s.GetDone(), count(int(s.GetBuckets()), "bucket"))
	case s.GetNextAtMs() > 0:
		text += ": next cycle at " + moment(s.GetNextAtMs())
	}
	if s.GetRepositoryProblem() != "" || len(s.GetConflicts()) > 0 {
		text += "; the limits repository is not in step: grl rlc status"
	}
	return text
}
