package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk/desktest"
)

// refusedWithin bounds how long it takes to refuse a configuration.
const refusedWithin = time.Second

// placed is how the place of a fault is named.
var placed = regexp.MustCompile(`\.ya?ml:\d+:\d+: `)

// TestFaultsOfConfigurations applies each poison configuration by the command,
// and then puts some into the directory that is watched. Nothing changes.
func TestFaultsOfConfigurations(t *testing.T) {
	f := newFleet(t, faultLimit, nil)
	cases := desktest.Poison()
	byCommand, byDirectory := 40, 3
	if *measure {
		byCommand, byDirectory = len(cases), 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d cases", seed, len(cases))
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	before := f.configuration()

	var slowest time.Duration
	var name string
	for _, c := range cases[:byCommand] {
		dir := filepath.Join(t.TempDir(), "poison")
		if !writeSources(t, dir, c.Files()) {
			continue // has names that no directory can have
		}
		e := f.controller.ask("apply", "-f", dir, "--force", "--reason", "poison")
		if e.took > slowest {
			slowest, name = e.took, c.Name
		}
		if e.code == 0 || e.code > 2 {
			t.Errorf("%s: grl apply ended with %d:\n%s%s", c.Name, e.code, e.stdout, e.stderr)
		}
		if !c.Whole && !placed.MatchString(e.stderr) {
			t.Errorf("%s: no place is named in %.1000q", c.Name, e.stderr)
		}
		if e.took > slack(refusedWithin) {
			t.Errorf("%s: refused after %v, want at most %v and slack", c.Name, e.took, refusedWithin)
		}
		removeAll(t, dir)
	}
	report(t, "slowest poison configuration refused by the command, "+name, slowest.Seconds(), refusedWithin.Seconds(), "s")
	if after := f.configuration(); after != before {
		t.Errorf("poison changed the configuration:\n%s\nbefore:\n%s", after, before)
	}

	cases = slices.DeleteFunc(cases, func(c desktest.Case) bool { return c.Whole })
	var longest time.Duration
	for _, c := range cases[:byDirectory] {
		put := time.Now()
		writeSources(t, f.limits, c.Files())
		eventually(t, c.Name+": the directory is refused", func() bool { return f.controller.must("grl_controller_limits_refused") == 1 })
		longest = max(longest, time.Since(put))
		var status struct{ LimitsRefused string }
		if f.controller.read(&status, "status"); !placed.MatchString(status.LimitsRefused) {
			t.Errorf("%s: no place is named in %.1000q", c.Name, status.LimitsRefused)
		}
		for _, s := range c.Files() {
			_ = os.Remove(filepath.Join(f.limits, s.Name)) // of a name that was not written
		}
		write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(faultLimit))
		eventually(t, c.Name+": the directory holds again", func() bool { return f.controller.must("grl_controller_limits_refused") == 0 })
	}
	// The directory is read each second, and taken once it is the same twice.
	measured(t, "longest until poison in the directory was refused", longest, 2*time.Second+refusedWithin)
	if after := f.configuration(); after != before {
		t.Errorf("poison in the directory changed the configuration:\n%s\nbefore:\n%s", after, before)
	}
}

// writeSources writes files into dir and reports whether they can be there.
func writeSources(t *testing.T, dir string, files []limitsfile.Source) bool {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, s := range files {
		name := s.Name
		if filepath.Ext(name) == "" {
			name += ".yaml"
		}
		if len(name) > 200 || strings.ContainsAny(name, "/\x1b\x00") || strings.HasPrefix(name, ".") {
			return false
		}
		write(t, filepath.Join(dir, name), string(s.Data))
	}
	return true
}

// configuration returns the revision and what it says.
func (f *fleet) configuration() string {
	f.t.Helper()
	answer, err := f.controller.connect().Config.GetConfiguration(f.t.Context(), &grlv1.GetConfigurationRequest{})
	if err != nil {
		f.t.Fatal(err)
	}
	text := fmt.Sprintf("r%d\n", answer.GetRevision().GetNumber())
	for _, file := range answer.GetFiles() {
		text += string(file.GetData())
	}
	return text
}
