package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	grlv1 "grl/proto/grl/v1"
)

func node(role grlv1.Role, name, zone, region string, change func(*grlv1.Node)) *grlv1.Node {
	n := &grlv1.Node{
		Role: role, Name: name, Zone: zone, Region: region, Version: "v2", ConfigRevision: 5, ConfigSerial: 2,
		ReportAgeMs: 400, DirectiveAgeMs: 700, BytesReceived: 1_234_567, BytesSent: 999,
	}
	if change != nil {
		change(n)
	}
	return n
}

func TestStatus(t *testing.T) {
	const agg, host, ctl = grlv1.Role_ROLE_AGGREGATOR, grlv1.Role_ROLE_CLIENT, grlv1.Role_ROLE_CONTROLLER
	s := status{
		fleet: &grlv1.GetFleetResponse{
			Name: "c1", Version: "v2", Leads: true, Region: "us", Revision: 5, Serial: 2,
			Nodes: []*grlv1.Node{
				node(agg, "a1", "us1", "us", func(n *grlv1.Node) { n.Hosts = 3 }),
				node(host, "h1", "us1", "us", nil),
				node(host, "h2", "us1", "us", func(n *grlv1.Node) { n.ConfigRevision, n.RefusedRevision, n.RefusedReason = 4, 5, "too \x1b[31mnew" }),
				node(host, "h3", "us1", "us", func(n *grlv1.Node) { n.ReportAgeMs = 4000 }),
				node(ctl, "c2", "", "eu", func(n *grlv1.Node) { n.Hosts = 2; n.ConfigSerial = 1 }),
				node(agg, "a2", "eu1", "eu", func(n *grlv1.Node) { n.Hosts = 2; n.ConfigRevision = 4 }),
				node(host, "h4", "eu1", "eu", nil),
				node(host, "h5", "eu1", "eu", nil),
			},
			Silent:           []*grlv1.SilentZone{{Name: "us2", SilentMs: 35_000}},
			LimitsRefused:    "a.yaml:1:1: no",
			DisabledServices: []string{"orders"},
			Rollout:          nil,
		},
		caps: []*grlv1.CapView{{
			Cap: &grlv1.Cap{
				Id: "7", Service: "pay", Match: &grlv1.Match{Procedure: "Charge"}, Gate: &grlv1.Cap_Block{Block: true}, Author: "ann", Reason: "storm", RemainingMs: 60_000,
			},
			EndsAtMs: 1_800_000_000_000,
		}},
	}
	want := `node               zone       version  revision  report  directive  received   sent  hosts  state
controller c1      region us  v2           r5.2       -          -         -      -      -  leads
  aggregator a1    us1        v2           r5.2    0.4s       0.7s    1.2 MB  999 B      3  ok
    host h2        us1        v2           r4.2    0.4s       0.7s    1.2 MB  999 B      -  refused r5: too �[31mnew
    host h3        us1        v2           r5.2    4.0s       0.7s    1.2 MB  999 B      -  silent for 4.0s
    … and 1 host                                                                            ok
  controller c2    region eu  v2           r5.1    0.4s       0.7s    1.2 MB  999 B      2  caps or what is disabled not there yet
    aggregator a2  eu1        v2           r4.2    0.4s       0.7s    1.2 MB  999 B      2  holds another revision
      2 hosts                                                                               ok

zone us2 is silent for 35s: what it offers now is missing from the figures
the limits directory is refused: a.yaml:1:1: no
disabled: orders
cap 7 on pay (procedure Charge): blocked until 2027-01-15 08:00:00Z (ann: storm)
`
	if diff := cmp.Diff(want, s.text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.hosts = true
	if diff := cmp.Diff(want, s.text()); diff == "" {
		t.Error("--hosts shows no more")
	}
}

func TestRolloutText(t *testing.T) {
	r := &grlv1.Rollout{Revision: 5, FromRevision: 4, State: grlv1.Rollout_STATE_RUNNING, Reached: []string{"us1"}, Waiting: []string{"us2", "eu1"}}
	if got, want := rolloutText(r), "r5 goes out zone by zone: in us1, then us2, eu1; grl rollout shows how far it is"; got != want {
		t.Errorf("running: %q, want %q", got, want)
	}
	r.State, r.Reason = grlv1.Rollout_STATE_STOPPED, "drops rose"
	if got, want := rolloutText(r), "the rollout of r5 was stopped: drops rose; us1 has it, the others hold r4: grl rollback goes back, grl rollout finish goes on"; got != want {
		t.Errorf("stopped: %q, want %q", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{rate(0), "0"},
		{rate(1239.6), "1,240"},
		{rate(3.46), "3.5"},
		{rate(3), "3"},
		{rate(0.0213), "0.021"},
		{rate(1e9), "1,000,000,000"},
		{limitText(1200), "1,200"},
		{limitText(0.125), "0.125"},
		{limitText(12345.5), "12,345.5"},
		{share(0), "0%"},
		{share(0.374), "37%"},
		{share(0.004), "0.4%"},
		{share(1), "100%"},
		{span(400 * time.Millisecond), "0.4s"},
		{span(90 * time.Second), "90s"},
		{span(29 * time.Minute), "29m"},
		{span(3*time.Hour + 5*time.Minute), "3h5m"},
		{span(24 * time.Hour), "24h"},
		{span(10*time.Hour + 10*time.Minute), "10h10m"},
		{size(812), "812 B"},
		{size(1_234_567), "1.2 MB"},
		{size(123_456_789), "123 MB"},
		{moment(0), "-"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "90d": 90 * 24 * time.Hour, "4w": 28 * 24 * time.Hour, "1h30m": 90 * time.Minute} {
		if got, err := parseSpan(text); err != nil || got != want {
			t.Errorf("parseSpan(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "5", "-1d", "1000000d", "soon"} {
		if got, err := parseSpan(text); err == nil {
			t.Errorf("parseSpan(%q) = %v", text, got)
		}
	}
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"payments.yaml": "payments.yaml", "payments": "payments.yaml", "../../etc/passwd": "_.._etc_passwd.yaml", "/root/.bashrc": "_root_.bashrc.yaml",
		".hidden.yaml": "hidden.yaml", "a\\b\x00c": "a_b_c.yaml",
	} {
		if got := fileName(name); got != want {
			t.Errorf("fileName(%q) = %q, want %q", name, got, want)
		}
	}
}
