package command_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

const (
	nightlyFile = "# Nightly limits.\nname: nightly\nkind: peak\nmatch: {service: payments}\nfloor: 10\n"
	hourlyFile  = "name: hourly\nkind: forecast\nmode: shadow\nmatch: {bucket: checkout}\n"
)

func TestPolicies(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "added    payments\n…", "apply", "-f", "payments.yaml")
	expect(t, 0, "no policies\n", "get", "policies")

	writeFile(t, "policies/nightly.yaml", nightlyFile)
	writeFile(t, "policies/hourly.yaml", hourlyFile)
	const added = "added    hourly\nadded    nightly\n"
	expect(t, 0, added+"would change 2 policies of r0 of the policies; nothing was changed\n", "policy", "apply", "-f", "policies", "--dry-run")
	expect(t, 0, added+"applied: r1 of the policies\n", "policy", "apply", "-f", "policies", "--reason", "first policies")
	expect(t, 0, "nothing changed: r1 of the policies holds\n", "policy", "apply", "-f", "policies")
	expect(t, 0, `policy   kind      mode     buckets
hourly   forecast  shadow         1
nightly  peak      propose        2
`, "get", "policies")
	expect(t, 0, hourlyFile+"---\n"+nightlyFile, "get", "policies", "-o", "yaml")
	expect(t, 0, nightlyFile, "get", "policies", "nightly", "-o", "yaml")
	expect(t, 1, "grl: there is no policy \"weekly\"\n", "get", "policies", "weekly")

	change(t, "policies/nightly.yaml", "floor: 10", "floor: 20")
	expect(t, 0, "changed  nightly\nwould change 1 policy of r1 of the policies; nothing was changed\n", "policy", "apply", "-f", "policies", "--dry-run")
	expect(t, 0, "changed  nightly\napplied: r2 of the policies\n", "policy", "apply", "-f", "policies/nightly.yaml")
	change(t, "policies/nightly.yaml", "floor: 20", "floor: 30")
	r := grl(t, "policy", "apply", "-f", "policies", "--base", "1")
	if r.code != 1 || !strings.Contains(r.errOut, "nightly") || !strings.Contains(r.errOut, "r2") {
		t.Errorf("a conflict: %+v", r)
	}
	expect(t, 0, "removed  hourly\ndeleted: r3 of the policies\n", "policy", "delete", "hourly", "--reason", "too lively")
	expect(t, 1, "grl: …", "policy", "delete", "hourly")
	expect(t, 2, "grl: --reason is missing: …", "policy", "rollback", "1")
	expect(t, 0, "added    hourly\nchanged  nightly\nrolled back to r1: r4 of the policies\n", "policy", "rollback", "r1", "--reason", "it was better")
	expect(t, 0, nightlyFile, "get", "policies", "nightly", "-o", "yaml", "--revision", "1")
	revisions := grl(t, "policy", "revisions", "--limit", "2")
	if revisions.code != 0 || !strings.Contains(revisions.out, "it was better") || !strings.Contains(revisions.out, "too lively") || strings.Contains(revisions.out, "first policies") {
		t.Errorf("revisions: %+v", revisions)
	}
}

func TestPoliciesRefused(t *testing.T) {
	control(t)
	writeFile(t, "bad.yaml", "name: agreed\nkind: quota\nmatch: {service: payments}\nhistory: 4w\nquota: [{rps: 5}]\n")
	const refused = "grl: refused, nothing was changed\nbad.yaml:4:1: history: not used by kind quota: a quota is agreed, and looks at no history\n"
	expect(t, 1, refused, "policy", "apply", "-f", "bad.yaml")
	expect(t, 3, refused, "policy", "apply", "-f", "bad.yaml", "--dry-run")

	writeFile(t, "all/nightly.yaml", nightlyFile)
	writeFile(t, "all/payments.yaml", limits)
	const isPolicy = "grl: all/nightly.yaml: found a policy file, expected a limits file (grl policy apply -f takes policy files)\n"
	expect(t, 1, isPolicy, "apply", "-f", "all")
	expect(t, 1, isPolicy, "diff", "-f", "all")
	expect(t, 1, "grl: all/payments.yaml: found a limits file, expected a policy file (grl apply -f takes limits files)\n", "policy", "apply", "-f", "all")
	expect(t, 2, "grl: no policy files: …", "policy", "apply")
	expect(t, 2, "grl: stat none: …", "policy", "apply", "-f", "none")
	expect(t, 2, "grl: name what to do: …", "policy")
	expect(t, 2, "grl: \"x\" is no revision …", "policy", "rollback", "x", "--reason", "y")
}

// cycles runs the cycles that are asked for, as a configurator does, with these
// results, until the test ends.
func cycles(t *testing.T, status *grlv1.ConfiguratorStatus, results ...*grlv1.RunResult) {
	t.Helper()
	const holder = "test/1"
	client := grlv1connect.NewConfiguratorServiceClient(http.DefaultClient, os.Getenv("GRL_URL"))
	attend := func(ctx context.Context) (*grlv1.AttendResponse, error) {
		return client.Attend(ctx, &grlv1.AttendRequest{Holder: holder, Status: status})
	}
	if a, err := attend(t.Context()); err != nil || !a.GetLeads() {
		t.Fatalf("attend: %v, %v", a, err)
	}
	cycle := func(ctx context.Context, request string) error {
		begun, err := client.BeginRun(ctx, &grlv1.BeginRunRequest{Holder: holder, Run: &grlv1.Run{
			RequestId: request, Trigger: "request", Source: "history", Buckets: uint32(len(results)), PolicyRevision: 1, BaseRevision: 1,
		}})
		if err != nil {
			return err
		}
		if _, err := client.RecordResults(ctx, &grlv1.RecordResultsRequest{Holder: holder, Run: begun.GetId(), Results: results}); err != nil {
			return err
		}
		_, err = client.FinishRun(ctx, &grlv1.FinishRunRequest{Holder: holder, Run: begun.GetId()})
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for {
			a, err := attend(ctx)
			for _, r := range a.GetRequests() {
				if err == nil {
					err = cycle(ctx, r.GetId())
				}
			}
			switch {
			case ctx.Err() != nil:
				ended <- nil
				return
			case err != nil:
				ended <- err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // a peer in the same real time as the command
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("configurator: %v", err)
		}
	})
}

func proposals() []*grlv1.RunResult {
	const nightly = "nightly"
	return []*grlv1.RunResult{
		{
			Bucket: "payments/checkout", Policy: nightly, Kind: "peak", Mode: grlv1.PolicyMode_POLICY_MODE_PROPOSE,
			Outcome: grlv1.RunOutcome_RUN_OUTCOME_PROPOSED,
			Before:  &grlv1.ComputedLimit{Rps: 1200}, After: &grlv1.ComputedLimit{Rps: 1400},
			Reason:  "1,200 → 1,400 rps: the peak of the last 4 weeks, 1,250 rps",
			Numbers: []*grlv1.RunNumber{{Name: "peak", Value: 1250, Unit: "rps"}, {Name: "buffer", Value: 1.1}},
		},
		{
			Bucket: "payments/each-caller", Policy: nightly, Kind: "peak", Mode: grlv1.PolicyMode_POLICY_MODE_PROPOSE,
			Outcome: grlv1.RunOutcome_RUN_OUTCOME_REFUSED, Refused: "coverage", Before: &grlv1.ComputedLimit{Rps: 200},
			Reason: "half of the last week is missing",
		},
		{
			Bucket: "payments/everything", Policy: nightly, Kind: "peak", Mode: grlv1.PolicyMode_POLICY_MODE_PROPOSE,
			Outcome: grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED,
			Before:  &grlv1.ComputedLimit{Rps: 20_000}, After: &grlv1.ComputedLimit{Rps: 20_000},
		},
	}
}

func TestRLC(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "added    payments\n…", "apply", "-f", "payments.yaml")
	const nobody = "no configurator attends: grl serve --role configurator is one\n"
	expect(t, 0, nobody, "rlc", "status")
	expect(t, 1, "grl: "+nobody, "rlc", "run")
	expect(t, 0, "no runs\n", "rlc", "runs")

	cycles(t, &grlv1.ConfiguratorStatus{
		Version: "1.0", Source: "history", Repository: "/srv/limits", Commit: "4f2c1a9be70d1122334455", RepositoryProblem: "cannot push",
		NextAtMs: time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC).UnixMilli(),
	}, proposals()...)
	expect(t, 0, `configurator  test/1, last heard of at TIME
version       1.0
source        history
repository    /srv/limits at 4f2c1a9be70d
problem       cannot push
next cycle    TIME
`, "rlc", "status")
	status := grl(t, "status")
	if want := "\nconfigurator test/1: next cycle at 2026-12-01 02:00:00Z; the limits repository is not in step: grl rlc status\n"; !strings.HasSuffix(status.out, want) {
		t.Errorf("status: %s", status.out)
	}

	const found = `run 1 at TIME: done
trigger request by local, history from history, policies r1, limits r1
3 buckets: 1 proposed, 1 refused, 1 unchanged

bucket                policy   outcome            before  after  reason
payments/checkout     nightly  proposed            1,200  1,400  1,200 → 1,400 rps: the peak of the last 4 weeks, 1,250 rps
payments/each-caller  nightly  refused: coverage     200      -  half of the last week is missing
`
	expect(t, 0, found, "rlc", "run", "--wait")
	expect(t, 0, found, "rlc", "show", "1")
	expect(t, 0, `run 1 at TIME: done
trigger request by local, history from history, policies r1, limits r1
3 buckets: 1 proposed, 1 refused, 1 unchanged

bucket               policy   outcome    before   after  reason
payments/everything  nightly  unchanged  20,000  20,000
`, "rlc", "show", "1", "--outcome", "unchanged")
	expect(t, 0, `run 1 at TIME: done
trigger request by local, history from history, policies r1, limits r1
3 buckets: 1 proposed, 1 refused, 1 unchanged

payments/checkout: proposed by policy nightly (peak, propose)
1,200 → 1,400 rps: the peak of the last 4 weeks, 1,250 rps
  peak                      1,250 rps
  buffer                    1.1
`, "rlc", "show", "1", "--bucket", "payments/checkout")
	if r := grl(t, "rlc", "show", "1", "--bucket", "payments/none"); r.code != 1 || r.errOut != "grl: run 1 has no such result of bucket \"payments/none\"\n" {
		t.Errorf("a bucket that is not there: %+v", r)
	}
	expect(t, 1, "grl: …", "rlc", "show", "7")

	approve := grl(t, "rlc", "approve", "1", "payments/checkout", "--reason", "agreed")
	if approve.code != 0 || !strings.Contains(approve.out, "+ limit: {rps: 1400}") || !strings.Contains(approve.out, "approved 1 proposal of run 1: r2\n") {
		t.Errorf("approve: %+v", approve)
	}
	shown := grl(t, "rlc", "show", "1")
	if !strings.Contains(shown.out, "proposed, approved") {
		t.Errorf("show after the approval: %s", shown.out)
	}
	r := grl(t, "rlc", "reject", "1", "payments/checkout", "--reason", "too late")
	if r.code != 1 {
		t.Errorf("a proposal that was approved, rejected: %+v", r)
	}
}

func TestRLCReject(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	expect(t, 0, "added    payments\n…", "apply", "-f", "payments.yaml")
	cycles(t, nil, proposals()...)
	asked := grl(t, "rlc", "run", "--dry-run")
	if asked.code != 0 || !strings.HasPrefix(asked.out, "asked for run ") {
		t.Errorf("run without waiting: %+v", asked)
	}
	run := grl(t, "rlc", "run", "--service", "payments", "--wait", "--json")
	if run.code != 0 || !strings.Contains(run.out, `"outcome": "RUN_OUTCOME_PROPOSED"`) {
		t.Errorf("run --json: %+v", run)
	}
	runs := grl(t, "rlc", "runs")
	if lines := strings.Split(runs.out, "\n"); len(lines) != 4 || !strings.Contains(lines[1], "1 proposed, 1 refused, 1 unchanged") || !strings.Contains(lines[2], "dry run") {
		t.Errorf("runs:\n%s", runs.out)
	}
	expect(t, 0, "rejected 1 proposal of run 2\n", "rlc", "reject", "2", "--all", "--reason", "a sale")
	if shown := grl(t, "rlc", "show", "2"); !strings.Contains(shown.out, "proposed, rejected") {
		t.Errorf("show after the rejection: %s", shown.out)
	}
	for _, wrong := range [][]string{
		{"rlc"},
		{"rlc", "approve"},
		{"rlc", "approve", "2", "--reason", "x"},
		{"rlc", "approve", "2", "a/b", "--all", "--reason", "x"},
		{"rlc", "approve", "2", "--all"},
		{"rlc", "reject", "2", "--all", "--reason", "x", "--force"},
		{"rlc", "show", "two"},
		{"rlc", "show", "2", "--outcome", "good"},
	} {
		expect(t, 2, "…", wrong...)
	}
}
