package command_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestCap(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "added    …", "apply", "-f", "payments.yaml")
	place := []string{"cap", "payments", "--caller", "checkout", "--rps", "200.5", "--for", "30m", "--reason", "retry storm"}
	expect(t, 0, "expected: …", append(place, "--dry-run")...)
	expect(t, 0, "no caps\n", "cap", "list")
	r := grl(t, place...)
	if got := moments.ReplaceAllString(r.out, "TIME"); r.code != 0 || got != "placed cap 1 on payments (caller checkout): 200.5 rps until TIME; lift it with grl cap lift 1\n" ||
		!strings.HasPrefix(r.errOut, "expected: ") {
		t.Errorf("cap: %+v", r)
	}
	expect(t, 1, "expected: …", "cap", "payments", "--block", "--for", "1m", "--reason", "all of it")
	expect(t, 0, "expected: …", "cap", "payments", "--block", "--for", "1m", "--reason", "all of it", "--force", "--dry-run")
	expect(t, 0, `id  service   caller    procedure     admits  left  offered  dropped  clients  author  reason
1   payments  checkout  *          200.5 rps  30m         0        0      0/0  local   retry storm
`, "get", "caps", "payments")
	r = grl(t, "cap", "list", "--json")
	var list struct {
		Caps []struct {
			Cap struct {
				ID    string
				Limit struct{ Rps float64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list.Caps) != 1 || list.Caps[0].Cap.ID != "1" || list.Caps[0].Cap.Limit.Rps != 200.5 {
		t.Errorf("cap list --json: %+v, %v", r, err)
	}
	r = grl(t, "explain", "--service", "payments", "--caller", "checkout")
	if r.code != 0 || !strings.Contains(r.out, "cap of local, 30m left: retry storm") || !strings.Contains(r.out, "owner team-payments") {
		t.Errorf("explain: %+v", r)
	}
	r = grl(t, "cap", "extend", "1", "--for", "2h", "--reason", "not over")
	if got := moments.ReplaceAllString(r.out, "TIME"); r.code != 0 || got != "extended cap 1 on payments (caller checkout): until TIME\n" {
		t.Errorf("cap extend: %+v", r)
	}
	if r := grl(t, "cap", "list"); !strings.Contains(r.out, "  2h  ") {
		t.Errorf("cap list after it was extended: %+v", r)
	}
	expect(t, 2, "grl: --for is missing: …", "cap", "extend", "1")
	expect(t, 2, "grl: --for: …", "cap", "extend", "1", "--for", "soon")
	expect(t, 1, "grl: …", "cap", "extend", "1", "--for", "1h") // it holds longer
	expect(t, 1, "grl: …", "cap", "extend", "1", "--for", "25h")
	expect(t, 1, "grl: …", "cap", "extend", "2", "--for", "1h")
	expect(t, 0, "lifted cap 1 on payments (caller checkout)\n", "cap", "lift", "1", "--reason", "over")
	expect(t, 0, "no caps\n", "get", "caps")
	expect(t, 1, "grl: …", "cap", "lift", "1")
}

func TestDisable(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "added    …", "apply", "-f", "payments.yaml")
	expect(t, 0, "disabled: payments\n", "disable", "payments", "--reason", "INC-1")
	if r := grl(t, "explain", "--service", "payments"); !strings.Contains(r.out, "dropped    nothing: dropping is disabled\n") {
		t.Errorf("explain: %+v", r)
	}
	expect(t, 0, "disabled: everything; nothing is dropped anywhere\n", "disable", "--all", "--reason", "INC-1")
	if r := grl(t, "status"); !strings.Contains(r.out, "disabled: everything") {
		t.Errorf("status: %+v", r)
	}
	expect(t, 0, "disabled: payments\n", "enable", "--all", "--reason", "over")
	expect(t, 0, "enabled: limits are enforced\n", "enable", "payments", "--reason", "over")
}

// The switch of one host needs no controller.
func TestDisableHere(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GRL_URL", "http://127.0.0.1:1")
	expect(t, 0, "wrote here/disabled: within a second the client with this switch file drops nothing of payments\n", "disable", "payments", "--here")
	expect(t, 0, "wrote here/disabled: within a second the client with this switch file drops nothing of payments, orders\n", "disable", "orders", "--here")
	expect(t, 0, "wrote here/disabled: still disabled on this host: orders\n", "enable", "payments", "--here")
	expect(t, 0, "wrote here/disabled: within a second the client with this switch file drops nothing\n", "disable", "--all", "--here")
	expect(t, 1, "grl: enable: here/disabled disables everything: grl enable --all --here\n", "enable", "orders", "--here")
	if text, err := os.ReadFile("here/disabled"); err != nil || string(text) != "all\n" {
		t.Errorf("switch file %q, %v", text, err)
	}
	expect(t, 0, "removed here/disabled: within a second the limits hold on this host again\n", "enable", "--all", "--here")
	if _, err := os.Stat("here/disabled"); !os.IsNotExist(err) {
		t.Errorf("the switch file is there: %v", err)
	}
	expect(t, 0, "there is no here/disabled: nothing was disabled by it\n", "enable", "--all", "--here")
	expect(t, 0, "wrote other/disabled: …", "disable", "--all", "--here", "--state-dir", "other")
	expect(t, 0, "wrote x: …", "disable", "--all", "--here", "--file", "x")
}

func TestAudit(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "ok: no entries yet\n", "audit", "verify")
	expect(t, 0, "added    …", "apply", "-f", "payments.yaml", "--reason", "first")
	expect(t, 0, "disabled: …", "disable", "--all", "--reason", "second")
	expect(t, 0, `entry  at                    actor  from       action  subjects                                                      revision  reason
    1  TIME  local  127.0.0.1  apply   payments, payments/checkout, payments/each-caller and 1 more        r1  first
`, "audit", "--subject", "payments")
	expect(t, 0, "ok: entries 1 to 2, the newest has hash …", "audit", "verify")
	r := grl(t, "audit", "--json")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("audit --json: %+v, want two lines", r)
	}
	var entry struct{ Number, Action, Reason string }
	if err := json.Unmarshal([]byte(lines[0]), &entry); err != nil || entry.Number != "2" || entry.Action != "disable" || entry.Reason != "second" {
		t.Errorf("first line %s: %v", lines[0], err)
	}
	if r := grl(t, "audit", "--limit", "1", "-o", "yaml"); strings.Count(r.out, "number:") != 1 {
		t.Errorf("audit of one entry: %+v", r)
	}
}
