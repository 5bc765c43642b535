package access

import (
	"strings"
	"testing"
)

func TestParseID(t *testing.T) {
	for _, tt := range []struct {
		id   string
		node Node
	}{
		{"spiffe://grl.internal/role/client/zone/eu1/svc/payments", Node{Client, "eu1", "payments"}},
		{"spiffe://grl.internal/role/aggregator/zone/eu1", Node{Aggregator, "eu1", ""}},
		{"spiffe://a_b-c.1/role/controller/zone/eu", Node{Controller, "eu", ""}},
		{"spiffe://x/role/configurator/zone/Eu_1.b-2", Node{Configurator, "Eu_1.b-2", ""}},
	} {
		domain, n, err := ParseID(tt.id)
		if err != nil || n != tt.node {
			t.Errorf("ParseID(%q) = %+v, %v", tt.id, n, err)
			continue
		}
		if back, err := n.ID(domain); err != nil || back != tt.id {
			t.Errorf("%q is written as %q, %v", tt.id, back, err)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, id := range []string{
		"", "spiffe://", "http://d/role/client/zone/z/svc/s", "SPIFFE://d/role/client/zone/z/svc/s",
		"spiffe:///role/aggregator/zone/z", "spiffe://D/role/aggregator/zone/z", "spiffe://d:443/role/aggregator/zone/z",
		"spiffe://u@d/role/aggregator/zone/z",
		"spiffe://d/role/client/zone/z", "spiffe://d/role/client/zone/z/svc/", "spiffe://d/role/client/zone//svc/s",
		"spiffe://d/role/aggregator/zone/z/svc/s", "spiffe://d/role/controller/zone/z/svc/s",
		"spiffe://d/role/admin/zone/z", "spiffe://d/role/Client/zone/z/svc/s", "spiffe://d/role//zone/z",
		"spiffe://d/Role/aggregator/zone/z", "spiffe://d/role/aggregator/Zone/z", "spiffe://d/role/client/zone/z/service/s",
		"spiffe://d/role/aggregator/zone/z/", "spiffe://d/role/aggregator/zone/z?x", "spiffe://d/role/aggregator/zone/z#x",
		"spiffe://d/role/aggregator/zone/a%2Fb", "spiffe://d/role/aggregator/zone/..", "spiffe://d/role/aggregator/zone/-z",
		"spiffe://d/role/aggregator/zone/z\x00", "spiffe://d/role/aggregator/zone/zä", "spiffe://d/role/client/zone/z/svc/a:b",
		"spiffe://d/role/client/zone/z/svc/s/svc/t", "spiffe://d//role/aggregator/zone/z",
		"spiffe://d/role/aggregator/zone/" + strings.Repeat("z", 257), "spiffe://" + strings.Repeat("d", 256) + "/role/aggregator/zone/z",
		"spiffe://d/role/client/zone/_unknown/svc/_other", "spiffe://d/role/client/zone/z/svc/" + strings.Repeat("/", 3000),
	} {
		if domain, n, err := ParseID(id); err == nil || domain != "" || n != (Node{}) {
			t.Errorf("ParseID(%q) = %q, %+v, %v; want an error alone", id, domain, n, err)
		} else if len(err.Error()) > 1000 {
			t.Errorf("ParseID of %d bytes: error of %d bytes", len(id), len(err.Error()))
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("spiffe://grl.internal/role/client/zone/eu1/svc/payments")
	f.Add("spiffe://grl.internal/role/aggregator/zone/eu1")
	f.Add("spiffe://d/role/aggregator/zone/a%2Fb?x#y")
	f.Fuzz(func(t *testing.T, id string) {
		domain, n, err := ParseID(id)
		if err != nil {
			return
		}
		// One node has one id, so no two spellings name the same one.
		if back, err := n.ID(domain); err != nil || back != id {
			t.Errorf("%q is read as %+v, which is written %q, %v", id, n, back, err)
		}
	})
}

func TestNodeString(t *testing.T) {
	for n, want := range map[Node]string{
		{Client, "eu1", "pay"}:   "client of pay in zone eu1",
		{Aggregator, "eu1", ""}:  "aggregator of zone eu1",
		{Controller, "eu", ""}:   "controller of region eu",
		{Configurator, "eu", ""}: "configurator of region eu",
	} {
		if n.String() != want {
			t.Errorf("%q, want %q", n, want)
		}
	}
}
