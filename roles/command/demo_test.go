package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"grl/roles/command"
)

// runDemo executes grl demo.
func runDemo(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := command.Demo()
	var out bytes.Buffer
	var errOut lockedBuffer // roles log while progress is written, as os.Stderr allows
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// lockedBuffer is a buffer that may be written concurrently.
type lockedBuffer struct {
	mu     sync.Mutex // guards buffer
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func TestDemoPrintsOneObject(t *testing.T) {
	stdout, stderr, err := runDemo(t, "--seconds", "12", "--surge", "4", "--json", "--verbose")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(stdout, "\n") != 1 {
		t.Errorf("stdout %q, want one line", stdout)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("stdout %q: %v", stdout, err)
	}
	for _, key := range []string{
		"limit_rps", "offered_peak_rps", "admitted_mean_rps", "settle_seconds", "false_drops_before", "false_drops_after",
		"upstream_errors", "shadow_drops", "decisions",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s in %s", key, stdout)
		}
	}
	for _, want := range []string{"limits/shop.yaml:\nservice: shop\n", "dashboard http://127.0.0.1:", "installed configuration", " 12 s  after "} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr without %q:\n%s", want, stderr)
		}
	}
}

func TestDemoRefusesWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{"--seconds", "11"}, {"--seconds", "3601"}, {"--surge", "2"}, {"--surge", "NaN"}, {"--surge", "101"},
	} {
		stdout, _, err := runDemo(t, args...)
		var exit *command.ExitError
		if !errors.As(err, &exit) || exit.Code != command.ExitWrongUse || stdout != "" {
			t.Errorf("demo %v = %q, %v; want wrong use", args, stdout, err)
		}
		if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(err.Error(), a) }) {
			t.Errorf("demo %v: %v does not say what is wrong", args, err)
		}
	}
}
