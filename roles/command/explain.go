package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

// Explain returns the command that says what happens to a request, and why.
func Explain() *cobra.Command {
	var call calling
	var request grlv1.ExplainRequest
	cmd := &cobra.Command{
		Use:   "explain --service S [--caller C] [--procedure P]",
		Short: "Say what happens to a request now, and why",
		Long: `Say which caps and buckets a request passes, in their order, with limit, load, drop
ratio and the age of the directive, who owns them, and what a dropped caller should
do.`,
		Example: "  grl explain --service payments --caller checkout --procedure payments.v1.Charges/Create",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if request.Service == "" {
				return wrongUse(errors.New("--service is missing"))
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.View.Explain(cmd.Context(), &request)
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), answer, func() string { return explainText(&request, answer) })
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	cmd.Flags().StringVar(&request.Service, "service", "", "the `service` that is called")
	cmd.Flags().StringVar(&request.Caller, "caller", "", "`name` of the caller (default: a request that names none)")
	cmd.Flags().StringVar(&request.Procedure, "procedure", "", "the `procedure`: pkg.Service/Method, or METHOD /route/{template}")
	cmd.Flags().StringVar(&request.Zone, "zone", "", "the `zone` where it is decided (default: any)")
	cmd.Flags().BoolVar(&request.Verified, "verified", false, "the caller is verified, by a client certificate")
	return cmd
}

func explainText(r *grlv1.ExplainRequest, e *grlv1.ExplainResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service    %s (owner %s, r%d)\n", e.GetService(), dash(e.GetOwner()), e.GetRevision())
	verified := ""
	if r.GetVerified() {
		verified = ", verified"
	}
	fmt.Fprintf(&b, "request    from %s%s to %s\n", dash(r.GetCaller()), verified, dash(r.GetProcedure()))
	switch {
	case !e.GetKnown():
		b.WriteString("dropped    nothing: the service has no limits\n")
	case e.GetExempt():
		b.WriteString("dropped    nothing: the service exempts such requests\n")
	case e.GetDisabled():
		b.WriteString("dropped    nothing: dropping is disabled\n")
	default:
		fmt.Fprintf(&b, "dropped    %s\n", share(e.GetDropRatio()))
	}
	if e.GetAdvice() != "" {
		fmt.Fprintf(&b, "caller     %s\n", e.GetAdvice())
	}
	text := terminal.Printable(b.String())
	if len(e.GetCells()) > 0 {
		text += "\n" + cellTable(e)
	}
	return text + terminal.Printable(silentText(e.GetSilent()))
}

func cellTable(e *grlv1.ExplainResponse) string {
	t := terminal.Table{Columns: []string{"bucket", "cell", "matches", "behavior", ">limit", ">offered", ">admitted", ">drop", ">directive", "what happens"}}
	for _, c := range e.GetCells() {
		b := c.GetBucket()
		age := "none"
		if b.GetDirectiveAgeMs() >= 0 {
			age = span(milliseconds(b.GetDirectiveAgeMs()))
		}
		t.Add(b.GetBucket(), cellText(b), matchText(c.GetMatch()), behaviorText(b), gateText(b),
			atLeast(b.GetOfferedRps(), b.GetSilentZones(), e.GetSilent()), atLeast(b.GetAdmittedRps(), b.GetSilentZones(), e.GetSilent()),
			share(b.GetDropRatio()), age, verdictText(c))
	}
	return t.String()
}

func matchText(m *grlv1.Match) string {
	return anyName(m.GetCaller()) + " → " + anyName(m.GetProcedure())
}

// verdictText says what happens at a cell, and of a cap who placed it.
func verdictText(c *grlv1.ExplainCell) string {
	if c.GetBucket().GetCapId() == "" {
		return c.GetVerdict()
	}
	left := span(milliseconds(c.GetRemainingMs()).Round(time.Second)) + " left"
	if c.GetRemainingMs() <= 0 {
		left = "ramps out"
	}
	return fmt.Sprintf("%s (cap of %s, %s: %s)", c.GetVerdict(), c.GetAuthor(), left, c.GetReason())
}
