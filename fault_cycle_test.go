package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"grl/store"
	"grl/store/storetest"
)

// TestFaultLargeCycle computes many buckets over five weeks of history in one
// cycle, and measures how long that takes and how much memory.
func TestFaultLargeCycle(t *testing.T) {
	buckets := 50
	if *measure {
		buckets = 5000
	}
	f := emptyFleet(t)
	cells := storetest.Cells(buckets)
	s, err := store.Open(t.Context(), f.db)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	if err := storetest.Fill(t.Context(), s, storetest.FillOptions{Seed: seed, Cells: cells, Weeks: 5, Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	limits := t.TempDir()
	for i := 0; i < buckets; i += 10 {
		var text strings.Builder
		fmt.Fprintf(&text, "service: service-%d\nowner: team\nbuckets:\n", i/10)
		for j := range 10 {
			fmt.Fprintf(&text, "  - {name: bucket-%d, match: {caller: caller-%d}, limit: {rps: 300}, behavior: deny}\n", j, j)
		}
		write(t, filepath.Join(limits, fmt.Sprintf("service-%d.yaml", i/10)), text.String())
	}
	f.addController("--controller.db", f.db)
	rlc := f.member("configurator")
	rlc.args = []string{"--role", "configurator", "--configurator.listen", rlc.control, "--configurator.controller", f.controller.url()}
	f.start()
	f.controller.do("apply", "-f", limits)
	for i, kind := range []string{"peak", "forecast"} {
		write(t, filepath.Join(rlc.dir, kind+".yaml"), fmt.Sprintf("name: %s\nkind: %s\nmode: apply\nmatch: {bucket: \"%s\"}\n", kind, kind, []string{"*", "bucket-9"}[i]))
		f.controller.do("policy", "apply", "-f", filepath.Join(rlc.dir, kind+".yaml"))
	}
	rlc.launch()
	rlc.serving()
	patient(t, "the cycle is done", 10*time.Minute, func() bool {
		done, _ := rlc.metric("grl_configurator_last_cycle_timestamp_seconds")
		return done > 0
	})
	var runs struct {
		Runs []struct {
			Buckets                   int
			Outcomes                  []int
			StartedAtMs, FinishedAtMs json.Number
		}
	}
	f.controller.read(&runs, "rlc", "runs")
	run := runs.Runs[0]
	took := float64(number(t, run.FinishedAtMs)-number(t, run.StartedAtMs)) / 1000
	report(t, fmt.Sprintf("cycle of %d buckets over five weeks", run.Buckets), took, 120, "s")
	report(t, "memory of the configurator at most", rlc.peakMemory(), 1024, "MiB")
	report(t, "memory of the controller at most", f.controller.peakMemory(), 1024, "MiB")
	t.Logf("outcomes %v", run.Outcomes)
	if run.Buckets != buckets || len(run.Outcomes) <= 4 || run.Outcomes[4] < buckets*9/10 {
		t.Errorf("%d buckets with outcomes %v, want %d of which nearly all are applied", run.Buckets, run.Outcomes, buckets)
	}
	if took > 5*120 {
		t.Errorf("the cycle took %.0f s", took)
	}
}

func number(t *testing.T, n json.Number) int64 {
	t.Helper()
	v, err := n.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// peakMemory returns the most memory that the process had, in MiB.
func (m *member) peakMemory() float64 {
	m.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				m.t.Fatal(err)
			}
			return kib / 1024
		}
	}
	m.t.Fatal("no VmHWM")
	return 0
}

// patient is eventually of what takes long.
func patient(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	timeout := time.After(within)
	for !ok() {
		select {
		case <-again.C:
		case <-timeout:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
