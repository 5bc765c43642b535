package command_test

import (
	"slices"
	"strings"
	"testing"

	"grl/roles/command"
)

func TestNoController(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GRL_URL", "http://127.0.0.1:1")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	writeFile(t, "payments.yaml", limits)
	for _, args := range [][]string{
		{"apply", "-f", "payments.yaml"},
		{"diff", "--from", "1"},
		{"get", "buckets"},
		{"export"},
		{"rollback", "1", "--reason", "x"},
		{"promote", "a/b"},
		{"audit"},
		{"audit", "verify"},
		{"cap", "a", "--block", "--for", "1m", "--reason", "x"},
		{"cap", "list"},
		{"disable", "--all", "--reason", "x"},
		{"enable", "--all", "--reason", "x"},
		{"explain", "--service", "a"},
		{"status"},
		{"top"},
		{"whoami"},
		{"account", "list"},
		{"token", "list"},
		{"rollout"},
		{"logout"},
	} {
		expect(t, 1, "grl: cannot reach a controller at URL (connection refused): is it running? --controller or GRL_URL names another one\n", args...)
	}
}

func TestCommandsRefuseWrongUse(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GRL_URL", "http://127.0.0.1:1")
	writeFile(t, "empty/README.md", "")
	writeFile(t, "a.yaml", limits)
	for _, line := range []string{
		"apply", "apply -f none", "apply -f empty", "apply -f a.yaml --force", "apply -f a.yaml --now", "apply -f a.yaml -o xml", "apply a.yaml",
		"diff", "diff -f a.yaml --from 1", "diff --from 0", "diff -f a.yaml --to 3", "diff --from 1 --prune",
		"get", "get buckets --order size", "get buckets a b", "get traffic",
		"rollback", "rollback 0 --reason x", "rollback abc --reason x", "rollback 3",
		"cap", "cap a", "cap a --rps 1 --block --for 1m --reason x", "cap a --rps 0 --for 1m --reason x", "cap a --rps NaN --for 1m --reason x",
		"cap a --block --reason x", "cap a --block --for soon --reason x", "cap a --block --for 1m", "cap lift",
		"disable", "disable a", "disable a --all --reason x", "disable --all", "disable a b --here", "disable --all --file x --reason y",
		"enable", "enable a/b! --here", "disable --all --here --file x --state-dir y",
		"explain", "status --json -o", "audit --limit -1", "audit verify -o xml",
		"login", "login ann", "login ann --password-file none", "account", "account add ann", "account add ann --role king", "account add ann --role admin --oidc --keep-password", "token",
		"token create ci --role viewer --for soon", "whoami --controller ftp://x", "whoami --ca none", "whoami --token-file none", "rollout finish",
	} {
		r := grl(t, strings.Fields(line)...)
		if r.code != command.ExitWrongUse || r.out != "" || !strings.HasPrefix(r.errOut, "grl: ") {
			t.Errorf("grl %s: %+v, want wrong use", line, r)
		}
	}
}

func TestTables(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "added    …", "apply", "-f", "payments.yaml")
	expect(t, 0, `bucket                cell  behavior   limit  offered  admitted  dropped  shadow  drop  candidate  hosts  owner
payments/checkout     -     deny       1,200        0         0        0       0    0%          -      0  team-payments
payments/each-caller  -     allow        200        0         0        0       0    0%          -      0  team-payments
payments/everything   -     deny      20,000        0         0        0       0    0%          -      0  team-payments
`, "get", "buckets")
	expect(t, 0, "bucket  cell  behavior  limit  offered  admitted  dropped  shadow  drop  candidate  hosts  owner\n", "get", "buckets", "orders")
	expect(t, 0, `bucket                cell  behavior   limit  offered  admitted  dropped  shadow  drop  hosts
payments/checkout     -     deny       1,200        0         0        0       0    0%      0
payments/each-caller  -     allow        200        0         0        0       0    0%      0
payments/everything   -     deny      20,000        0         0        0       0    0%      0
`, "top")
	expect(t, 0, `service    payments (owner team-payments, r1)
request    from - to -
dropped    0%
caller     nothing to do now; be ready to wait as Retry-After says when a request is dropped

bucket               cell  matches  behavior   limit  offered  admitted  drop  directive  what happens
payments/everything  -     * → *    deny      20,000        0         0    0%       none  drops nothing: nothing is offered to it
`, "explain", "--service", "payments")
	expect(t, 0, "service    orders (owner -, r1)\nrequest    from - to -\ndropped    nothing: the service has no limits\n…", "explain", "--service", "orders")
	expect(t, 0, "hour  bucket  caller  procedure  offered  dropped  shadow\n", "get", "traffic", "payments")
	r := grl(t, "status")
	if fields := strings.Fields(strings.SplitAfter(r.out, "\n")[1]); r.code != 0 || fields[0] != "controller" || !slices.Contains(fields, "leads") || !slices.Contains(fields, "r1") {
		t.Errorf("status: %+v", r)
	}
	for _, args := range [][]string{{"get", "buckets"}, {"get", "revisions"}, {"status"}, {"top"}, {"explain", "--service", "payments"}, {"whoami"}, {"rollout"}, {"cap", "list"}} {
		for format, begin := range map[string]string{"json": "{\n", "yaml": ""} {
			r := grl(t, append(args, "-o", format)...)
			if r.code != 0 || r.errOut != "" || !strings.HasPrefix(r.out, begin) || !strings.Contains(r.out, ":") {
				t.Errorf("grl %v -o %s: %+v", args, format, r)
			}
		}
	}
}
