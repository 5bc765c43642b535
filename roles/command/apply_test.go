package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	control(t)
	writeFile(t, "limits/payments.yaml", limits)
	const all = "added    payments\nadded    payments/checkout\nadded    payments/each-caller\nadded    payments/everything\n"
	expect(t, 0, all+"would change 4 buckets of r0; nothing was changed\n", "apply", "-f", "limits", "--dry-run")
	expect(t, 0, all+"applied r1\n", "apply", "-f", "limits", "--reason", "first limits")
	expect(t, 0, "nothing changed: r1 holds\n", "apply", "-f", "limits")

	change(t, "limits/payments.yaml", "1200", "1300")
	expect(t, 3, `--- payments/checkout (r1)
+++ payments/checkout (files)
@@ -1,4 +1,4 @@
 name: checkout
 match: {caller: checkout}
-limit: {rps: 1200}
+limit: {rps: 1300}
 behavior: deny
`, "diff", "-f", "limits")
	expect(t, 0, "changed  payments/checkout\n         - limit: {rps: 1200}\n         + limit: {rps: 1300}\napplied r2\n", "apply", "-f", "limits/payments.yaml")
	expect(t, 0, "", "diff", "-f", "limits")

	expect(t, 0, "changed  payments/each-caller\n         - behavior: allow\n         + behavior: deny\n…", "promote", "payments/each-caller", "--dry-run")
	expect(t, 0, "changed  payments/each-caller\n…", "promote", "payments/each-caller")
	expect(t, 3, "--- payments (r1)\n+++ payments (r3)\n…", "diff", "--from", "1")
	expect(t, 3, "--- payments (r1)\n+++ payments (r2)\n…", "diff", "--from", "1", "--to", "2")
	r := grl(t, "rollback", "r1", "--reason", "it was better")
	if r.code != 0 || !strings.HasSuffix(r.out, "rolled back to r1: r4\n") {
		t.Errorf("rollback: %+v", r)
	}
	expect(t, 0, "", "diff", "--from", "1", "--to", "4")
	expect(t, 0, `revision  at                    author  source  reason
      r4  TIME  local   -       it was better
      r3  TIME  local   -       -
      r2  TIME  local   apply   -
      r1  TIME  local   apply   first limits
`, "get", "revisions")
	expect(t, 0, "r4 is in all zones\n", "rollout")
}

// An edit that the files do not have stays, and is named each time they are
// applied.
func TestApplyNamesEdits(t *testing.T) {
	control(t)
	writeFile(t, "limits/payments.yaml", limits)
	expect(t, 0, "added    payments\n…", "apply", "-f", "limits")
	expect(t, 0, "changed  payments/each-caller\n…", "promote", "payments/each-caller")
	const kept = "kept     payments/each-caller as r2 by local has it; the files do not\n         grl export -o DIR writes the files as the limits hold\n"
	expect(t, 0, kept+"nothing changed: r2 holds\n", "apply", "-f", "limits")
	expect(t, 0, kept+"nothing changed: r2 holds\n", "apply", "-f", "limits", "--dry-run")
	expect(t, 0, "wrote r2 to limits: 1 file\n", "export", "-o", "limits")
	expect(t, 0, "nothing changed: r2 holds\n", "apply", "-f", "limits")
}

func TestApplyRefused(t *testing.T) {
	control(t)
	writeFile(t, "limits/payments.yaml", limits)
	expect(t, 0, "added    payments\n…", "apply", "-f", "limits")

	writeFile(t, "bad/a.yaml", strings.Replace(limits, "1200", "12k", 1))
	writeFile(t, "bad/b.yaml", "service: orders\nbuckets: 7\n")
	refused := `grl: refused, nothing was changed
bad/a.yaml:6:18: buckets[0].limit.rps: found "12k", expected a number of requests per second from 0.001 to 1000000000, in decimal digits, without a unit
bad/b.yaml:2:10: buckets: found 7, expected a list
`
	expect(t, 1, refused, "apply", "-f", "bad")
	expect(t, 3, refused, "apply", "-f", "bad", "--dry-run")
	expect(t, 1, refused, "diff", "-f", "bad")

	// Somebody else changes the same bucket meanwhile.
	writeFile(t, "theirs/payments.yaml", strings.Replace(limits, "1200", "1400", 1))
	expect(t, 0, "changed  payments/checkout\n…", "apply", "-f", "theirs", "--reason", "sale")
	change(t, "limits/payments.yaml", "1200", "1100")
	expect(t, 1, `grl: refused, nothing was changed
conflict: payments/checkout was changed after r1 by r2 (local, TIME: sale)
  in r1, which this change was made from:
    name: checkout
    match: {caller: checkout}
    limit: {rps: 1200}
    behavior: deny
  in r2:
    name: checkout
    match: {caller: checkout}
    limit: {rps: 1400}
    behavior: deny
  as asked for:
    name: checkout
    match: {caller: checkout}
    limit: {rps: 1100}
    behavior: deny
take over into the files what shall stay of it, look at grl diff, and apply with --base 2: all in which they differ from r2 is then meant
`, "apply", "-f", "limits", "--base", "1")

	change(t, "limits/payments.yaml", "1100", "9000")
	r := grl(t, "apply", "-f", "limits", "--base", "2")
	if r.code != 1 || !strings.Contains(r.errOut, "needs --force and --reason: payments/checkout: ") {
		t.Errorf("six times the limit: %+v", r)
	}
	expect(t, 0, "changed  payments/checkout\n…", "apply", "-f", "limits", "--base", "2", "--force", "--reason", "agreed")
	expect(t, 1, "grl: …", "rollback", "99", "--reason", "no such")
	expect(t, 1, "grl: …", "promote", "payments/none")
}

func TestApplyAsJSON(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	r := grl(t, "apply", "-f", "payments.yaml", "--json")
	var got struct {
		Revision struct{ Number string }
		Changed  bool
		Changes  []struct{ Kind, Bucket, After string }
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 0 || r.errOut != "" {
		t.Fatalf("%+v: %v", r, err)
	}
	if got.Revision.Number != "1" || !got.Changed || len(got.Changes) != 4 || got.Changes[1].Kind != "KIND_ADDED" || !strings.Contains(got.Changes[1].After, "rps: 1200") {
		t.Errorf("apply --json: %+v", got)
	}
}

func TestExport(t *testing.T) {
	control(t)
	writeFile(t, "limits/payments.yaml", limits)
	writeFile(t, "limits/orders.yaml", "service: orders\nbuckets:\n  - {name: all, limit: {rps: 5}, behavior: deny}\n")
	expect(t, 0, "added    …", "apply", "-f", "limits")
	writeFile(t, "out/old.yaml", "")
	expect(t, 0, "wrote r1 to out: 2 files\nnote: out/old.yaml was there before, and is not of r1\n", "export", "-o", "out")
	if err := os.Remove("out/old.yaml"); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, "nothing changed: r1 holds\n", "apply", "-f", "out", "--prune")
	names, err := filepath.Glob("out/*")
	if err != nil || strings.Join(names, " ") != "out/orders.yaml out/payments.yaml" {
		t.Errorf("exported %v, %v", names, err)
	}
	expect(t, 0, limits[:30]+"…", "export", "--service", "payments")
	if r := grl(t, "export"); strings.Count(r.out, "\n---\n") != 1 {
		t.Errorf("export of two services: %+v", r)
	}
}
