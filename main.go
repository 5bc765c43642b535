// Grl limits the rate of requests between services, for a whole fleet: see
// README.md. This file is the root command; the roles are in package roles,
// whose table is the architecture.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // so that time zones of policies and limits hold on any machine

	"github.com/spf13/cobra"

	"grl/roles"
	"grl/roles/command"
)

// exitFailed is the exit code of a command that failed; package command has the
// others.
const exitFailed = 1

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes the command that args name and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx := untilSignal()
	root, running := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(stderr, "grl:", err)
	}
	return exitCode(err, *running)
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. A
// second one ends the process.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // before ctx ends, so that no second signal is lost
		cancel()
	}()
	return ctx
}

// exitCode maps what a command returned. What goes wrong before it runs, such
// as an unknown command or flag, is wrong use.
func exitCode(err error, running bool) int {
	var exit *command.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case !running, errors.Is(err, roles.ErrUsage):
		return command.ExitWrongUse
	default:
		return exitFailed
	}
}

// rootCommand returns the root with all commands, and whether one of them has
// been found and runs.
func rootCommand() (root *cobra.Command, running *bool) {
	running = new(bool)
	root = &cobra.Command{
		Use:              "grl",
		Short:            "grl limits the rate of requests between services, for a whole fleet",
		Version:          roles.Version(),
		SilenceErrors:    true, // run prints them
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { *running = true },
	}
	root.SetFlagErrorFunc(roles.FlagError)
	root.AddCommand(
		roles.ServeCommand(),
		roles.HealthcheckCommand(),
		command.Apply(),
		command.Diff(),
		command.Get(),
		command.Export(),
		command.Rollout(),
		command.Rollback(),
		command.Promote(),
		command.Policy(),
		command.RLC(),
		command.Cap(),
		command.Disable(roles.SwitchFile),
		command.Enable(roles.SwitchFile),
		command.Explain(),
		command.Status(),
		command.Top(),
		command.Audit(),
		command.Login(),
		command.Logout(),
		command.WhoAmI(),
		command.Account(),
		command.Token(),
		command.PKI(),
		command.Check(roles.CheckConfig),
		command.Demo(),
		command.Backtest(),
		command.Simulate(),
		roles.VersionCommand(),
	)
	return root, running
}
