package bucket

import (
	"context"
	"time"

	"github.com/a-h/templ"

	"grl/web/format"
	"grl/web/page"
)

func (s site) zones(_ context.Context, q query) (templ.Component, error) {
	return loadTable(s.zonesView(q)), nil
}

// zonesView shows where the load comes from now.
func (s site) zonesView(q query) tableView {
	parts := s.Backend.Parts(q.bucket(), q.Instance)
	v := tableView{
		ID: "zones", Title: "By zone", Caption: "Load by zone", First: "Zone", Unit: "rps", TabsName: "Parts",
		Empty: "No zone sends to it now.",
	}
	others := "zone"
	amounts := byZone(parts)
	if q.ByRegion {
		v.Title, v.Caption, v.First, others = "By region", "Load by region", "Region", "region"
		amounts = byRegion(parts)
	}
	if q.Caller != "" {
		v.Note = "of all callers"
	}
	zones, regions := q, q
	zones.ByRegion, regions.ByRegion = false, true
	v.Tabs = []tab{{"Zone", zones.path(""), !q.ByRegion}, {"Region", regions.path(""), q.ByRegion}}
	v.Rows = rowsOf(amounts, topRows, others, format.RPS)
	return v
}

func byZone(parts []page.Part) []amount {
	var out []amount
	for i := range parts {
		p := &parts[i]
		out = append(out, amount{name: p.Zone, offered: p.OfferedRPS, dropped: p.DroppedRPS, shadow: p.ShadowDroppedRPS, cutOff: cutOff(p), unknown: p.Silent && !p.Counted})
	}
	return out
}

func byRegion(parts []page.Part) []amount {
	at := make(map[string]int)
	var out []amount
	for i, z := range byZone(parts) {
		name := parts[i].Region
		if name == "" {
			name = "no region"
		}
		k, ok := at[name]
		if !ok {
			k = len(out)
			at[name] = k
			out = append(out, amount{name: name, unknown: true})
		}
		out[k].unknown = out[k].unknown && z.unknown
		out[k].add(z)
		out[k].lacks = out[k].lacks || z.unknown
		if out[k].cutOff == "" {
			out[k].cutOff = z.cutOff
		}
	}
	return out
}

// cutOff says that a zone does not report, how long it still enforces its last
// share, and what its rates are.
func cutOff(p *page.Part) string {
	switch {
	case !p.Silent:
		return ""
	case p.AutonomousFor > 0:
		return "Cut off, " + format.Age(p.AutonomousFor.Truncate(time.Second)) + " left: last known"
	case p.Counted:
		return "Cut off for " + format.Age(p.SilentFor.Truncate(time.Second)) + ": last known"
	}
	return "Cut off for " + format.Age(p.SilentFor.Truncate(time.Second)) + ": not known"
}
