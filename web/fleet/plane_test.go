package fleet_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/rolestest"
	"grl/web/pagetest"
)

// manyLimits returns a limits file of eleven buckets, so that a change of all of
// them goes from zone to zone.
func manyLimits(rps int) string {
	text := "service: shop\nbuckets:\n"
	for i := range 11 {
		text += fmt.Sprintf("  - {name: b%d, match: {caller: c%d}, limit: {rps: %d}, behavior: deny}\n", i, i, rps)
	}
	return text
}

// open starts three zones, with as many hosts as their number.
func open(t testing.TB) *rolestest.Plane {
	p := rolestest.NewPlane(t, manyLimits(10))
	p.Controller()
	for z := 1; z <= 3; z++ {
		zone := fmt.Sprintf("z%d", z)
		p.Aggregator("agg-"+zone, zone, "r1")
		for h := range z {
			p.Host(fmt.Sprintf("host-%d-%d", z, h), zone, "r1", "shop", "agg-"+zone)
		}
	}
	return p
}

func body(t testing.TB, p *rolestest.Plane, who access.Person, target string, fragment bool) string {
	t.Helper()
	r, text := pagetest.Get(t, p.Pages(), who, target, fragment)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d:\n%s", target, r.StatusCode, text)
	}
	return text
}

// stat returns a number of the page by its name, with its unit.
func stat(t testing.TB, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(name) + `</dt><dd class="stat__value">([^<]*)(?:<span class="unit">([^<]*)</span>)?</dd>`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no number %q in\n%s", name, text)
	}
	return m[1] + m[2]
}

// The numbers are those that the API says of each node, counted again.
func TestFiguresOfTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		settle(30 * time.Second)
		body(t, p, pagetest.Admin, "/fleet/now", true) // what nodes have counted is known from here on
		first, began := p.Fleet(), time.Now()
		settle(25 * time.Second)
		text, now := body(t, p, pagetest.Admin, "/fleet/now", true), p.Fleet()

		hosts, on, zones, versions := 0, 0, map[string]bool{}, map[string]bool{}
		var slowest uint32
		counted := map[string]uint64{}
		for _, n := range first.GetNodes() {
			counted[n.GetName()] = n.GetReports()
		}
		reports := 0.0
		for _, n := range now.GetNodes() {
			if n.GetRole() == grlv1.Role_ROLE_CLIENT {
				hosts++
			}
			if n.GetConfigRevision() == now.GetRevision() {
				on++
			}
			zones[n.GetZone()], versions[n.GetVersion()] = true, true
			slowest = max(slowest, n.GetDirectiveAgeMs())
			reports += float64(n.GetReports()-counted[n.GetName()]) / time.Since(began).Seconds()
		}
		for name, want := range map[string]string{
			"Hosts reporting":                        fmt.Sprint(hosts),
			"Zones":                                  fmt.Sprintf("%d of %d", len(zones), len(zones)),
			fmt.Sprintf("On r%d", now.GetRevision()): fmt.Sprintf("%d%% of nodes", 100*on/len(now.GetNodes())),
			"Slowest directive":                      fmt.Sprintf("%d.%d s", slowest/1000, slowest%1000/100),
			"Versions":                               fmt.Sprint(len(versions)),
		} {
			if got := stat(t, text, name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
		shown, err := strconv.ParseFloat(strings.TrimSuffix(stat(t, text, "Reports"), " /s"), 64)
		if err != nil || math.Abs(shown-reports) > 0.01*reports {
			t.Errorf("reports a second = %v (%v), want %v", shown, err, reports)
		}
	})
}

// settle lets time pass.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A zone whose aggregator is gone is shown as cut off, with what comes next.
func TestLostZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		settle(30 * time.Second)
		if text := body(t, p, pagetest.Admin, "/fleet", true); strings.Contains(text, "Cut off") {
			t.Errorf("a zone is cut off:\n%s", text)
		}
		p.Stop("agg-z2")
		settle(10 * time.Second)
		text := body(t, p, pagetest.Admin, "/fleet", false)
		wants(t, text, "z2 cut off", ">r1<", ">z2<", "Cut off 1", "Autonomous for ", "Nothing was heard since ")
		if got := stat(t, text, "Zones"); got != "2 of 3" {
			t.Errorf("Zones = %q, want 2 of 3", got)
		}
	})
}

// A rollout shows where it is, and an admin takes it to all zones.
func TestFinishesARollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		settle(30 * time.Second)
		if _, err := p.Config().Apply(t.Context(), &grlv1.ApplyRequest{
			Force: true, Reason: "many", Files: []*grlv1.LimitsFile{{Name: "shop.yaml", Data: []byte(manyLimits(20))}},
		}); err != nil {
			t.Fatal(err)
		}
		settle(12 * time.Second)
		text := body(t, p, pagetest.Admin, "/fleet", false)
		wants(t, text, "Take it to all zones", "r2 is in 1 of 3 zones; the others hold r1", "Waits for r2")
		viewer := access.Person{Name: "vic", Level: access.Viewer, By: "session"}
		if strings.Contains(body(t, p, viewer, "/fleet", false), "Take it to all zones") {
			t.Error("a viewer sees the form")
		}
		if r, _ := pagetest.Post(t, p.Pages(), viewer, "/fleet/rollout", url.Values{"reason": {"hurry"}}); r.StatusCode != http.StatusForbidden {
			t.Errorf("a viewer's form: status %d, want 403", r.StatusCode)
		}

		r, text := pagetest.Post(t, p.Pages(), pagetest.Admin, "/fleet/rollout", url.Values{"reason": {"a hurry"}})
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/fleet?finished=2" {
			t.Fatalf("status %d to %q:\n%s", r.StatusCode, r.Header.Get("Location"), text)
		}
		settle(12 * time.Second)
		wants(t, body(t, p, pagetest.Admin, "/fleet?finished=2", false), "r2 goes to all zones", "Every node holds it.")
		for _, n := range p.Fleet().GetNodes() {
			if n.GetConfigRevision() != 2 {
				t.Errorf("%s holds r%d, want r2", n.GetName(), n.GetConfigRevision())
			}
		}
		r, text = pagetest.Post(t, p.Pages(), pagetest.Admin, "/fleet/rollout", url.Values{"reason": {"<once> more"}})
		if r.StatusCode != http.StatusNotFound || !strings.Contains(text, `role="alert"`) {
			t.Errorf("a second time: status %d, want 404 and why", r.StatusCode)
		}
	})
}
