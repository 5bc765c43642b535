package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

// Cap returns the command that places, lists, extends and lifts caps.
func Cap() *cobra.Command {
	var call calling
	var f capFlags
	cmd := &cobra.Command{
		Use:   "cap SERVICE [--caller C] [--procedure P] (--rps N | --block) --for 30m --reason TEXT",
		Short: "Limit a caller or procedure of a service at once, for a time",
		Long: `Place a cap: an incident limit that is tried before the buckets of the service, at
every client within a second, and ends by itself. It ends with a ramp of two minutes;
grl cap extend has it end later, grl cap lift at once. What it is expected to do is shown first, and on a
terminal you are asked.

A cap over everything that a service is sent needs --force.`,
		Example: `  grl cap payments --caller checkout --rps 200 --for 30m --reason "retry storm"
  grl cap payments --procedure 'payments.v1.Charges/*' --block --for 10m --reason "INC-123" --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrongUse(errors.New("name the service to cap, as in grl cap payments --caller checkout"))
			}
			request, err := f.request(cmd, args[0])
			if err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			return placeCap(cmd, &call, conn, request, f)
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	f.add(cmd)
	cmd.AddCommand(capList(&call), capExtend(&call), capLift(&call))
	return cmd
}

// capFlags say what a cap shall do.
type capFlags struct {
	caller, procedure, span, reason string
	rps                             float64
	block, force, dryRun, yes       bool
}

func (f *capFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.caller, "caller", "", "`pattern` of callers: a name, the beginning of one with *, or any if not given")
	cmd.Flags().StringVar(&f.procedure, "procedure", "", "`pattern` of procedures")
	cmd.Flags().Float64Var(&f.rps, "rps", 0, "requests per second to admit, 0.001 to 1e9")
	cmd.Flags().BoolVar(&f.block, "block", false, "admit nothing")
	cmd.Flags().StringVar(&f.span, "for", "", "how long, 1s to 24h")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why: dropped callers and the audit see it")
	cmd.Flags().BoolVar(&f.force, "force", false, "cap everything that the service is sent")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what it would do, place nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
}

func (f *capFlags) request(cmd *cobra.Command, service string) (*grlv1.PlaceCapRequest, error) {
	r := &grlv1.PlaceCapRequest{
		Service: service, Caller: f.caller, Procedure: f.procedure, Reason: f.reason, Force: f.force,
	}
	switch rps := cmd.Flags().Changed("rps"); {
	case rps == f.block:
		return nil, wrongUse(errors.New("say what to admit: either --rps N, or --block"))
	case f.block:
		r.Gate = &grlv1.PlaceCapRequest_Block{Block: true}
	case !(f.rps > 0):
		return nil, wrongUse(fmt.Errorf("--rps %v: want a number above 0; --block admits nothing", f.rps))
	default:
		r.Gate = &grlv1.PlaceCapRequest_Rps{Rps: f.rps}
	}
	d, err := capSpan(f.span)
	if err != nil {
		return nil, err
	}
	r.DurationMs = d.Milliseconds()
	if err := needReason(f.reason); err != nil {
		return nil, err
	}
	return r, nil
}

// capSpan reads how long a cap shall hold.
func capSpan(text string) (time.Duration, error) {
	if text == "" {
		return 0, wrongUse(errors.New("--for is missing: a cap ends, say when, as in --for 30m"))
	}
	d, err := parseSpan(text)
	if err != nil {
		return 0, wrongUse(fmt.Errorf("--for: %w", err))
	}
	return d, nil
}

// placeCap shows what a cap would do, asks where somebody can be asked, and
// places it.
func placeCap(cmd *cobra.Command, call *calling, conn *remote.Conn, r *grlv1.PlaceCapRequest, f capFlags) error {
	out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
	try := proto.CloneOf(r)
	try.DryRun = true
	expected, err := conn.Incident.PlaceCap(cmd.Context(), try)
	if err != nil {
		return refusedDryRun(err, f.dryRun)
	}
	if f.dryRun {
		return call.print(out, expected, func() string { return effectText(expected.GetEffect()) + "\nnothing was placed\n" })
	}
	fmt.Fprintln(errOut, effectText(expected.GetEffect()))
	if !f.yes && terminal.Asks(cmd.InOrStdin(), errOut) {
		yes, err := terminal.Confirm(cmd.Context(), cmd.InOrStdin(), errOut, "Place it?")
		if err != nil {
			return err
		}
		if !yes {
			return errors.New("nothing was placed")
		}
	}
	placed, err := conn.Incident.PlaceCap(cmd.Context(), r)
	if err != nil {
		return err
	}
	return call.print(out, placed, func() string {
		c := placed.GetCap()
		return terminal.Printable(fmt.Sprintf("placed cap %s on %s: %s until %s; lift it with grl cap lift %s\n",
			c.GetCap().GetId(), capMatch(c.GetCap()), capGate(c.GetCap()), moment(c.GetEndsAtMs()), c.GetCap().GetId()))
	})
}

// effectText says what a cap is expected to do.
func effectText(e *grlv1.CapEffect) string {
	switch {
	case e.GetText() != "":
		return terminal.Printable("expected: " + e.GetText())
	case e.OfferedRps == nil:
		return "expected: cannot tell"
	default:
		return fmt.Sprintf("expected: drops %s of %s requests per second", share(e.GetDropShare()), rate(e.GetOfferedRps()))
	}
}

// capMatch says whose requests a cap is tried on.
func capMatch(c *grlv1.Cap) string {
	var parts []string
	if caller := c.GetMatch().GetCaller(); caller != "" {
		parts = append(parts, "caller "+caller)
	}
	if procedure := c.GetMatch().GetProcedure(); procedure != "" {
		parts = append(parts, "procedure "+procedure)
	}
	if len(parts) == 0 {
		parts = append(parts, "everything")
	}
	return c.GetService() + " (" + strings.Join(parts, ", ") + ")"
}

func capGate(c *grlv1.Cap) string {
	if c.GetBlock() {
		return "blocked"
	}
	return limitText(c.GetLimit().GetRps()) + " rps"
}

func capList(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [SERVICE]",
		Short: "List the caps in force and those that ramp out, the newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return listCaps(cmd, call, args) },
	}
	call.prints(cmd)
	return cmd
}

func listCaps(cmd *cobra.Command, call *calling, args []string) error {
	conn, err := call.dial(cmd)
	if err != nil {
		return err
	}
	list, err := conn.Incident.ListCaps(cmd.Context(), &grlv1.ListCapsRequest{Service: strings.Join(args, "")})
	if err != nil {
		return err
	}
	return call.print(cmd.OutOrStdout(), list, func() string {
		if len(list.GetCaps()) == 0 {
			return "no caps\n"
		}
		return capTable(list.GetCaps())
	})
}

func capTable(caps []*grlv1.CapView) string {
	t := terminal.Table{Columns: []string{"id", "service", "caller", "procedure", ">admits", "left", ">offered", ">dropped", ">clients", "author", "reason"}}
	for _, c := range caps {
		left := span(milliseconds(c.GetCap().GetRemainingMs()).Round(time.Second))
		if c.GetCap().GetRemainingMs() <= 0 {
			left = "ramps out"
		}
		t.Add(c.GetCap().GetId(), c.GetCap().GetService(), anyName(c.GetCap().GetMatch().GetCaller()), anyName(c.GetCap().GetMatch().GetProcedure()),
			capGate(c.GetCap()), left, rate(c.GetOfferedRps()), rate(c.GetDroppedRps()),
			clientsText(c), c.GetCap().GetAuthor(), c.GetCap().GetReason())
	}
	return t.String()
}

// clientsText says how many clients hold a cap, and of how many more nothing is
// heard: "2/2 + 3 unheard".
func clientsText(c *grlv1.CapView) string {
	text := fmt.Sprintf("%d/%d", c.GetClientsHolding(), c.GetClients())
	if c.GetClientsUnheard() > 0 {
		text += fmt.Sprintf(" + %d unheard", c.GetClientsUnheard())
	}
	return text
}

func capExtend(call *calling) *cobra.Command {
	var text, reason string
	cmd := &cobra.Command{
		Use:   "extend ID --for 1h",
		Short: "Have a cap that is in force end later",
		Long: `Have a cap that is in force end later than it would: a time from now on. One that has
ended already, and ramps out, is placed anew instead.`,
		Example: `  grl cap extend 3 --for 1h --reason "not fixed yet"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := capSpan(text)
			if err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Incident.ExtendCap(cmd.Context(), &grlv1.ExtendCapRequest{Id: args[0], DurationMs: d.Milliseconds(), Reason: reason})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), answer, func() string {
				c := answer.GetCap()
				return terminal.Printable(fmt.Sprintf("extended cap %s on %s: until %s\n", c.GetCap().GetId(), capMatch(c.GetCap()), moment(c.GetEndsAtMs())))
			})
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&text, "for", "", "how long from now on, 1s to 24h")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	return cmd
}

func capLift(call *calling) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "lift ID",
		Short: "End a cap at once, without a ramp",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Incident.LiftCap(cmd.Context(), &grlv1.LiftCapRequest{Id: args[0], Reason: reason})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), answer, func() string {
				return terminal.Printable(fmt.Sprintf("lifted cap %s on %s\n", answer.GetCap().GetCap().GetId(), capMatch(answer.GetCap().GetCap())))
			})
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	return cmd
}

// anyName returns a pattern, "*" where there is none.
func anyName(pattern string) string {
	if pattern == "" {
		return "*"
	}
	return pattern
}
