package client

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSwitchFilePath(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{}, "/run/grl/disabled"},
		{Config{StateDir: "/var/lib/grl"}, "/var/lib/grl/disabled"},
		{Config{StateDir: "/var/lib/grl", SwitchFile: "/etc/off"}, "/etc/off"},
	} {
		if got := SwitchFile(tt.c); got != tt.want {
			t.Errorf("SwitchFile(%+v) = %q, want %q", tt.c, got, tt.want)
		}
	}
}

// The switch works at one host with no control plane, within a second.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		dir := filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, "disabled")
		p := begin(t, dir, slog.NewTextHandler(&log, nil))
		m := configuration(1, 1)
		p.say(m)
		cell := p.limiter.Cell(bucketCell(0))
		check := func(what string, dropped bool, gauge float64) {
			t.Helper()
			time.Sleep(switchEvery)
			synctest.Wait()
			cell.SetRatio(1)
			if got := p.limiter.Service("pay").Decide("web", "p0").Dropped; got != dropped {
				t.Errorf("%s: dropped %v, want %v", what, got, dropped)
			}
			if got := p.gauge("grl_client_disabled"); got != gauge {
				t.Errorf("%s: grl_client_disabled = %v, want %v", what, got, gauge)
			}
		}
		write := func(services ...string) {
			t.Helper()
			if err := WriteSwitch(path, services...); err != nil {
				t.Fatal(err)
			}
		}
		remove := func() {
			t.Helper()
			if err := RemoveSwitch(path); err != nil {
				t.Fatal(err)
			}
		}
		check("without a file", true, 0)
		write()
		check("all", false, 1)
		write("other")
		check("another service", true, 1)
		write("other", "pay")
		check("this service", false, 1)
		remove()
		check("removed", true, 0)
		remove() // once more is no error

		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		check("an empty file", false, 1)
		remove()
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		check("a directory in its place, in an incident", false, 1)
		check("the same a second later", false, 1)
		remove()
		check("gone", true, 0)
		if err := os.WriteFile(path, []byte("no name!\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		check("what is no name", true, 0)
		p.stop()
		for _, trouble := range []string{"not a regular file", "is no name"} {
			if n := strings.Count(log.String(), trouble); n != 1 {
				t.Errorf("logged %q %d times, want once:\n%s", trouble, n, log.String())
			}
		}
		if n := cell.Counts(); n.ShadowDropped != 5 {
			t.Errorf("counts %+v, want 5 shadow drops", n)
		}
	})
}

func (p *process) gauge(name string) float64 {
	p.t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	p.t.Fatalf("no metric %s", name)
	return 0
}

func TestWriteSwitchRefusesWhatIsNoName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disabled")
	if err := WriteSwitch(path, "pay", "no name"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("wrote a file all the same")
	}
}

func TestReadSwitch(t *testing.T) {
	tests := []struct {
		name, text string
		all        bool
		services   string
		fails      bool
	}{
		{"blank", " \n\t\n", true, "", false},
		{"all", "all\n", true, "", false},
		{"names", "b\n\n  a \r\nb\n", false, "a b", false},
		{"all and a name", "a\nall", true, "a", false},
		{"long", strings.Repeat("a\n", maxSwitch), false, "", true},
		{"long name", strings.Repeat("a", 300), false, "", true},
		{"not text", "\xff\xfe", false, "", true},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "disabled")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := readSwitch(path)
		if d.all != tt.all || strings.Join(d.services, " ") != tt.services || (err != nil) != tt.fails {
			t.Errorf("%s: readSwitch = %+v, %v", tt.name, d, err)
		}
	}
}

// A local switch and what the configuration disables add up.
func TestSwitchBesideTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capRig(t)
		r.cap(1, blockFor(time.Hour))
		r.l.SetDisabled(false, "other")
		r.dropped("another service is disabled here", 1000, 0)
		m := configuration(1, 1)
		m.Serial, m.DisabledServices = 2, []string{"pay"}
		r.install(m)
		r.dropped("disabled by the configuration", 0, 0)
		r.l.SetDisabled(false)
		r.dropped("the switch here does not enable what is disabled everywhere", 0, 0)
		m = configuration(1, 1)
		m.Serial = 3
		r.install(m)
		if r.l.Disabled() {
			t.Error("something is disabled at the end")
		}
	})
}
