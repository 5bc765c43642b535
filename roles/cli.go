package roles

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// defaultFile is read when it is in the working directory and no other is
// named.
const defaultFile = "grl.toml"

// ServeCommand returns the command that runs roles until its context ends.
// Each key of grl.toml is a flag too: --client.zone.
func ServeCommand() *cobra.Command {
	var names []string
	var file string
	var insecure bool
	cmd := &cobra.Command{
		Use:   "serve --role ROLE[,ROLE…]",
		Short: "Run roles: client, aggregator, controller, configurator, or all of them",
		Long: `Run one role or several in this process, until SIGTERM or SIGINT; then readiness
turns 503, requests in flight finish, and grl exits with 0. A second signal ends at
once. SIGHUP reads the limits directory and the configuration again.

Settings come from flags, GRL_* environment variables (GRL_CLIENT_ZONE), the
configuration file and the defaults, the first that is set. docs/config.md says
what each key means; below, each has its flag and its variable.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringSliceVar(&names, "role", nil, "client, aggregator, controller, configurator or all; several with commas or by repeating")
	cmd.Flags().StringVar(&file, "config", "", "configuration `file` (default: "+defaultFile+" if there is one)")
	cmd.Flags().BoolVar(&insecure, "insecure-i-know", false, "allow control ports that other machines can reach in plain text")
	keys := pflag.NewFlagSet("keys", pflag.ContinueOnError)
	addKeyFlags(keys)
	cmd.Flags().AddFlagSet(keys)

	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(append(allRoles(), "all"), cobra.ShellCompDirectiveNoFileComp)) // the flag exists

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		roles, err := ParseRoles(names)
		if err != nil {
			return err
		}
		if _, err := os.Stat(defaultFile); file == "" && err == nil {
			file = defaultFile
		}
		load := func() (Config, error) {
			c, err := Load(file, os.Environ(), setKeys(keys))
			if err == nil {
				err = c.Validate(roles...)
			}
			return c, usage(err)
		}
		c, err := load()
		if err != nil {
			return err
		}
		syscall.Umask(0o077) // the store and its journal are nobody else's
		log, level := newLogger(cmd.ErrOrStderr(), c.Log)
		for _, variable := range ignoredEnv(os.Environ()) {
			log.Warn("ignored an environment variable that looks like one of Kubernetes", "variable", variable)
		}
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		return Serve(cmd.Context(), c, Options{
			Roles: roles, Log: log, Level: level, Version: Version(),
			InsecureIKnow: insecure, Out: cmd.OutOrStdout(), File: file, Load: load, Hangup: hangup,
		})
	}
	return cmd
}

// addKeyFlags adds a flag for each key of grl.toml.
func addKeyFlags(flags *pflag.FlagSet) {
	for _, k := range Keys() {
		help := k.Env()
		switch value := k.Default.(type) {
		case []string:
			flags.StringSlice(k.Name, value, help)
		case time.Duration:
			flags.Duration(k.Name, value, help)
		case string:
			flags.String(k.Name, value, help)
		}
	}
}

// setKeys returns the keys whose flags were given.
func setKeys(flags *pflag.FlagSet) map[string]any {
	set := map[string]any{}
	for _, k := range Keys() {
		if !flags.Changed(k.Name) {
			continue
		}
		// The flag was added with this type, so the errors are nil.
		switch k.Default.(type) {
		case []string:
			set[k.Name], _ = flags.GetStringSlice(k.Name)
		case time.Duration:
			set[k.Name], _ = flags.GetDuration(k.Name)
		case string:
			set[k.Name], _ = flags.GetString(k.Name)
		}
	}
	return set
}

// newLogger returns the log of a process, and the level that can change.
func newLogger(w io.Writer, c LogConfig) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	l, _ := c.level() // validated by the caller
	level.Set(l)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

// FlagError turns what cobra says of a wrong flag into an ErrUsage that names
// the nearest flag. It is for cobra.Command.SetFlagErrorFunc.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
		return usage(fmt.Errorf("unknown flag --%s; nearest is --%s", name, nearest(name, known)))
	}
	return usage(err)
}
