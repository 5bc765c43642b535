package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFaultOfTheLimits changes the watched directory under load, in good ways
// and bad ones. Nothing fails, and what cannot be read changes nothing.
func TestFaultOfTheLimits(t *testing.T) {
	const inForce = 5 * time.Second // a change must be, within
	f := newFleet(t, faultLimit, []zoneSize{{1, 3}})
	began := time.Now()
	l, _ := f.load(calm)
	l.holds("start", began, faultLimit, back)
	mount := configMap{t: t, dir: f.limits}

	changed := time.Now()
	write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(100))
	measured(t, "limit changed in place", l.holds("limit changed in place", changed, 100, inForce), inForce)

	changed = time.Now()
	mount.swap(map[string]string{"shop.yaml": shopLimit(200), "mail.yaml": strings.ReplaceAll(shopLimit(1), "shop", "mail")})
	measured(t, "limits mounted by links", l.holds("limits mounted by links", changed, 200, inForce), inForce)

	changed = time.Now()
	mount.swap(map[string]string{"shop.yaml": shopLimit(120), "mail.yaml": strings.ReplaceAll(shopLimit(2), "shop", "mail")})
	measured(t, "limits swapped by a link", l.holds("limits swapped by a link", changed, 120, inForce), inForce)

	mount.swap(map[string]string{"shop.yaml": "service: shop\nowner: team-shop\nbuckets: [{name: everything, limit: {rps: 0}, behavior: deny}]\n"})
	f.refused(t, "broken file", "shop.yaml:3:")
	l.holds("broken file", time.Now(), 120, inForce)

	changed = time.Now()
	mount.swap(map[string]string{"shop.yaml": shopLimit(180), "mail.yaml": strings.ReplaceAll(shopLimit(2), "shop", "mail")})
	measured(t, "limits repaired", l.holds("limits repaired", changed, 180, inForce), inForce)
	if refused := f.controller.must("grl_controller_limits_refused"); refused != 0 {
		t.Errorf("limits are refused after the repair: %v, want 0", refused)
	}

	away := f.limits + "-away"
	rename(t, f.limits, away)
	f.refused(t, "directory gone", f.limits)
	l.holds("directory gone", time.Now(), 180, inForce)
	rename(t, away, f.limits)

	changed = time.Now()
	mount.swap(map[string]string{"mail.yaml": strings.ReplaceAll(shopLimit(2), "shop", "mail")})
	measured(t, "limits deleted", l.holds("limits deleted", changed, calm, inForce), inForce)
	tail := time.Now().Add(-time.Second)
	if dropped := count(l.through(tail, time.Now()), http.StatusTooManyRequests); dropped > 0 {
		t.Errorf("%d requests were dropped by a limit that was deleted, want none", dropped)
	}
	l.unhurt("limits changed", began, -1, began)
}

// refused waits until the controller says by metric and by page that it does not
// take the limits directory, and why.
func (f *fleet) refused(t *testing.T, what, why string) {
	t.Helper()
	eventually(t, what+": limits refused", func() bool { return f.controller.must("grl_controller_limits_refused") == 1 })
	if _, page := get(t, "http://"+f.controller.control+"/"); !strings.Contains(page, why) {
		t.Errorf("%s: the dashboard lacks %q", what, why)
	}
}

// A configMap is a directory as Kubernetes mounts it: each file is a link
// through ..data, which is a link to a directory that is swapped as a whole.
type configMap struct {
	t    *testing.T
	dir  string
	last string // the directory that ..data led to
}

// swap makes the directory hold these files alone.
func (c *configMap) swap(files map[string]string) {
	c.t.Helper()
	now, err := os.MkdirTemp(c.dir, "..version-")
	if err != nil {
		c.t.Fatal(err)
	}
	for name, text := range files {
		write(c.t, filepath.Join(now, name), text)
	}
	link(c.t, filepath.Base(now), filepath.Join(c.dir, "..data"))
	for name := range files {
		link(c.t, filepath.Join("..data", name), filepath.Join(c.dir, name))
	}
	there, err := os.ReadDir(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range there {
		if _, ok := files[e.Name()]; !ok && !strings.HasPrefix(e.Name(), "..") {
			if err := os.Remove(filepath.Join(c.dir, e.Name())); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	if c.last != "" {
		removeAll(c.t, c.last)
	}
	c.last = now
}

// link makes name a link to target, in one step.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+".new"); err != nil {
		t.Fatal(err)
	}
	rename(t, name+".new", name)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
