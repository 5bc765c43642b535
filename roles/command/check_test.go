package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/roles/command"
)

const (
	good    = "service: shop\nbuckets:\n  - {name: all, limit: {rps: 5}, behavior: deny}\n"
	nightly = "name: nightly\nkind: peak\nmatch: {service: shop}\n"
	bad     = "service: orders\nbuckets:\n  - {name: all, limit: {rps: 100/s}, behavior: deny, candidate: 5}\n"
)

// run executes grl check in a directory with these files.
func run(t *testing.T, files map[string]string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := command.Check(configCheck)
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	return out.String(), errOut.String(), err
}

// configCheck accepts configuration files that are empty.
func configCheck(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 {
		err = errors.Join(errors.New(path+":1: unknown key"), errors.New(path+":2: no value"))
	}
	return err
}

func code(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var exit *command.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("check = %v, want an ExitError", err)
	}
	return exit.Code
}

func TestCheck(t *testing.T) {
	const badText = `bad.yaml:3:30: buckets[0].limit.rps: found "100/s", expected a number of requests per second from 0.001 to 1000000000, in decimal digits, without a unit
bad.yaml:3:65: buckets[0].candidate: found 5, expected a mapping such as {rps: 1200}
`
	tests := []struct {
		name           string
		files          map[string]string
		args           []string
		stdout, stderr string
		code           int
	}{
		{
			"directory",
			map[string]string{"limits/a.yaml": good, "limits/deep/b.yml": "service: orders\n", "limits/README.md": "x"},
			[]string{"limits"},
			"ok: 2 files, 2 services, 1 bucket\n", "", 0,
		},
		{"file beside its directory", map[string]string{"limits/a.yaml": good}, []string{"limits", "limits/a.yaml"}, "ok: 1 file, 1 service, 1 bucket\n", "", 0},
		{"with a configuration", map[string]string{"a.yaml": good, "grl.toml": ""}, []string{"a.yaml", "--config", "grl.toml"}, "ok: 2 files, 1 service, 1 bucket\n", "", 0},
		{
			"policies beside limits",
			map[string]string{"limits/a.yaml": good, "limits/policies/nightly.yaml": nightly},
			[]string{"limits"},
			"ok: 2 files, 1 service, 1 bucket, 1 policy\n", "", 0,
		},
		{"policies alone", map[string]string{"p/a.yaml": nightly, "p/b.yml": strings.NewReplacer("nightly", "hourly", "shop", "orders").Replace(nightly)}, []string{"p"}, "ok: 2 files, 0 services, 0 buckets, 2 policies\n", "", 0},
		{
			"bad policy",
			map[string]string{"p/a.yaml": strings.Replace(nightly, "kind: peak", "kind: peek", 1), "p/b.yaml": nightly},
			[]string{"p"},
			"", "p/a.yaml:2:7: kind: found \"peek\", expected peak, forecast, live or quota (perhaps peak)\n" +
				"p/b.yaml:1:1: name: the same as that of policy \"nightly\" at p/a.yaml:1:1\n" +
				"p/b.yaml:3:1: match: policy \"nightly\" selects the same buckets as policy \"nightly\" at p/a.yaml:1:1: each has one policy\n3 errors\n", 3,
		},
		{"configuration alone", map[string]string{"grl.toml": ""}, []string{"--config=grl.toml"}, "ok: 1 file, 0 services, 0 buckets\n", "", 0},
		{"empty directory", map[string]string{"limits/README.md": ""}, []string{"limits"}, "", "limits: no limits files, *.yaml or *.yml, in this directory\n1 error\n", 3},
		{"bad file", map[string]string{"bad.yaml": bad, "good.yaml": good}, []string{"."}, "", badText + "2 errors\n", 3},
		{
			"bad configuration too",
			map[string]string{"bad.yaml": bad, "grl.toml": "x"},
			[]string{"--config", "grl.toml", "bad.yaml"},
			"", "grl.toml:1: unknown key\ngrl.toml:2: no value\n" + badText + "4 errors\n", 3,
		},
		{
			"one name in two arguments",
			map[string]string{"a/x.yaml": good, "b/x.yaml": good},
			[]string{"a", "b"},
			"", "b/x.yaml:3:5: buckets[0]: \"all\" has the name of bucket \"all\" at a/x.yaml:3:5\n" +
				"b/x.yaml:3:5: buckets[0]: \"all\" has the same match, per and scope as bucket \"all\" at a/x.yaml:3:5\n2 errors\n", 3,
		},
		{"nothing named", nil, nil, "", "", 2},
		{"missing path", nil, []string{"none"}, "", "", 2},
		{"missing configuration", nil, []string{"--config", "none"}, "", "", 2},
		{"unknown output", map[string]string{"a.yaml": good}, []string{"-o", "yaml", "a.yaml"}, "", "", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, err := run(t, tt.files, tt.args...)
			if diff := cmp.Diff(tt.stdout, stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.stderr, stderr); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if got := code(t, err); got != tt.code {
				t.Errorf("check = %v with code %d, want code %d", err, got, tt.code)
			}
			// Either the command has printed what is wrong, or main does.
			if err != nil && (err.Error() == "") != (stderr != "") {
				t.Errorf("printed %q and returned %q", stderr, err)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	for _, flag := range []string{"-ojson", "--json"} {
		stdout, stderr, err := run(t, map[string]string{"bad.yaml": bad}, flag, "bad.yaml")
		if got := code(t, err); got != command.ExitNotHolds || stderr != "" {
			t.Errorf("check %s: code %d, stderr %q, want %d and none", flag, got, stderr, command.ExitNotHolds)
		}
		var got struct {
			OK     bool
			Files  int
			Errors []struct {
				File, Key, Found, Expected, Problem string
				Line, Column                        int
			}
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("check %s printed %q: %v", flag, stdout, err)
		}
		if got.OK || got.Files != 1 || len(got.Errors) != 2 {
			t.Fatalf("check %s = %+v, want two errors in one file", flag, got)
		}
		if e := got.Errors[0]; e.File != "bad.yaml" || e.Line != 3 || e.Column != 30 || e.Key != "buckets[0].limit.rps" || e.Found != `"100/s"` {
			t.Errorf("check %s: first error %+v", flag, e)
		}
	}
	stdout, _, err := run(t, map[string]string{"a.yaml": good}, "--json", "a.yaml")
	if err != nil || !strings.Contains(stdout, `"ok": true`) || !strings.Contains(stdout, `"errors": []`) {
		t.Errorf("check --json of a good file = %v, %s", err, stdout)
	}
}

// TestCheckPrintsWhatTheDocumentationSays runs the example of docs/concepts.md.
func TestCheckPrintsWhatTheDocumentationSays(t *testing.T) {
	doc, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "$ cat limits/orders.yaml\n")
	file, rest, found := strings.Cut(rest, "$ grl check limits/\n")
	want, _, ended := strings.Cut(rest, "$ echo $?\n3\n")
	if !found || !ended {
		t.Fatal("docs/concepts.md has no example of grl check")
	}
	_, stderr, err := run(t, map[string]string{"limits/orders.yaml": file}, "limits/")
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("grl check (-documented +printed):\n%s", diff)
	}
	if got := code(t, err); got != 3 {
		t.Errorf("exit code %d, want 3", got)
	}
}
