package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFaultSwitch stops all dropping in the two ways that there are: at one host
// by a file, with nobody to answer it, and at all by the controller.
func TestFaultSwitch(t *testing.T) {
	const switched = time.Second // no more drops within
	f := emptyFleet(t)
	write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(faultLimit))
	f.addController("--controller.db", f.db, "--controller.limits", f.limits)
	f.add([]zoneSize{{1, 2}, {1, 1}}, nil)
	for _, m := range f.sidecars {
		m.args = append(m.args, "--client.state_dir", filepath.Join(m.dir, "state"))
	}
	f.start()
	began := time.Now()
	l, _ := f.load(calm)
	l.holds("start", began, faultLimit, back)

	for _, m := range f.controlPlane() {
		m.kill()
	}
	here, stateDir := f.sidecars[0], filepath.Join(f.sidecars[0].dir, "state")
	off := time.Now()
	here.do("disable", "--all", "--here", "--state-dir", stateDir)
	eventually(t, "the client says that it drops nothing", func() bool { return here.must("grl_client_disabled") == 1 })
	measured(t, "one host switched off without a control plane", time.Since(off), switched)
	quietFrom := time.Now()
	pause(2 * time.Second)
	dropped := map[int]int{}
	for _, a := range l.through(quietFrom, time.Now()) {
		if a.status == http.StatusTooManyRequests {
			dropped[a.lane]++
		}
	}
	if dropped[0] > 0 || dropped[1] == 0 || dropped[2] == 0 {
		t.Errorf("drops by host %v with the first one switched off, want drops at the others alone", dropped)
	}
	on := time.Now()
	here.do("enable", "--all", "--here", "--state-dir", stateDir)
	for _, m := range f.controlPlane() {
		m.restart()
	}
	eventually(t, "the client drops again", func() bool { return here.must("grl_client_disabled") == 0 })
	l.holds("switched on again", on, faultLimit, 15*time.Second)

	off = time.Now()
	f.controller.do("disable", "--all", "--reason", "limits are wrong")
	measured(t, "all hosts switched off", l.lastDrop(off), switched)
	if text := f.controller.do("status").stdout; !strings.Contains(text, "disabled: everything") {
		t.Errorf("grl status does not say that everything is disabled:\n%s", text)
	}
	on = time.Now()
	f.controller.do("enable", "--all", "--reason", "limits are right")
	measured(t, "all hosts switched on", l.holds("all hosts switched on", on, faultLimit, back), back)
	l.unhurt("switched off and on", began, -1, began)
}
