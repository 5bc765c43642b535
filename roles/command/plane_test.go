package command_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"grl/roles"
	"grl/roles/command"
)

const limits = `service: payments
owner: team-payments
buckets:
  - name: checkout
    match: {caller: checkout}
    limit: {rps: 1200}
    behavior: deny
  - name: each-caller
    match: {caller: "*"}
    per: caller
    limit: {rps: 200}
    behavior: allow
  - name: everything
    limit: {rps: 20000}
    behavior: deny
`

// control starts a controller that has no configuration, in a directory of its
// own that becomes the working one, and has the commands of this test call it.
func control(t *testing.T) {
	t.Helper()
	controlOf(t, filepath.Join(t.TempDir(), "db"))
}

// controlOf is control with a database.
func controlOf(t *testing.T, db string) {
	t.Helper()
	t.Chdir(t.TempDir())
	config := roles.Default()
	config.Controller.Listen, config.Controller.DB = "127.0.0.1:0", db
	addresses := make(listening, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- roles.Serve(ctx, config, roles.Options{Roles: []string{"controller"}, Log: slog.New(addresses), Level: new(slog.LevelVar), Version: "test"})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	select {
	case address := <-addresses:
		t.Setenv("GRL_URL", "http://"+address)
	case err := <-ended:
		ended <- nil
		t.Fatalf("serve: %v", err)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, variable := range []string{"GRL_TOKEN", "GRL_TOKEN_FILE", "GRL_CA_FILE"} {
		t.Setenv(variable, "")
	}
}

// listening is a log that passes on the address at which a role listens.
type listening chan string

func (l listening) Enabled(context.Context, slog.Level) bool { return true }
func (l listening) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listening) WithGroup(string) slog.Handler            { return l }

func (l listening) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "listening" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "address" {
			l <- a.Value.String()
		}
		return true
	})
	return nil
}

// ran is what came of a command.
type ran struct {
	out, errOut string
	code        int
}

// grl runs a command as main does.
func grl(t *testing.T, args ...string) ran {
	t.Helper()
	root := &cobra.Command{Use: "grl", SilenceErrors: true, SilenceUsage: true}
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	here := func(string) (string, error) { return "here/disabled", nil }
	root.AddCommand(
		command.Apply(), command.Diff(), command.Get(), command.Export(), command.Rollout(), command.Rollback(), command.Promote(),
		command.Cap(), command.Disable(here), command.Enable(here), command.Explain(), command.Status(), command.Top(), command.Audit(),
		command.Login(), command.Logout(), command.WhoAmI(), command.Account(), command.Token(), command.Policy(), command.RLC(),
	)
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetIn(strings.NewReader(""))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	r := ran{code: 1}
	var exit *command.ExitError
	switch {
	case err == nil:
		r.code = 0
	case errors.As(err, &exit):
		r.code = exit.Code
	case !started:
		r.code = command.ExitWrongUse
	}
	if err != nil && err.Error() != "" {
		errOut.WriteString("grl: " + err.Error() + "\n")
	}
	r.out, r.errOut = out.String(), errOut.String()
	return r
}

// moments are the times that a command printed.
var moments = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`)

// expect runs a command and compares its exit code and what it printed, times
// as TIME, with want; where that ends with "…" only the beginning.
func expect(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	r := grl(t, args...)
	got := moments.ReplaceAllString(r.out+r.errOut, "TIME")
	got = strings.ReplaceAll(got, os.Getenv("GRL_URL"), "URL")
	begin, part := strings.CutSuffix(want, "…")
	if r.code != code || part && !strings.HasPrefix(got, begin) || !part && got != want {
		t.Errorf("grl %s: exit code %d, printed\n%s\nwant %d and\n%s", strings.Join(args, " "), r.code, got, code, want)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// change replaces what is in a file.
func change(t *testing.T, name, was, is string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), was) {
		t.Fatalf("no %q in %s: %v", was, name, err)
	}
	writeFile(t, name, strings.Replace(string(text), was, is, 1))
}
