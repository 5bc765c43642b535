package caps

import (
	"context"
	"maps"
	"slices"

	grlv1 "grl/proto/grl/v1"
	"grl/web/page"
)

// mostNames is how many names are offered for a field.
const mostNames = 100

// services returns the names of services with limits, and of others that are
// seen, sorted.
func (s site) services(ctx context.Context, cells []page.Cell) []string {
	known := make(map[string]bool)
	last := ""
	for i := range cells {
		if name := cells[i].Service; name != last { // cells of one stand together
			known[name], last = true, name
		}
	}
	for _, hour := range s.hours(ctx, "") {
		for _, p := range hour.GetServices() {
			known[p.GetService()] = true
		}
	}
	return first(known)
}

// names are who calls a service, and by what, sorted.
type names struct{ Callers, Procedures []string }

// names collects what is known of the callers of a service.
func (s site) names(ctx context.Context, service string, cells []*page.Cell) names {
	if service == "" {
		return names{}
	}
	callers, procedures := make(map[string]bool), make(map[string]bool)
	for _, c := range cells {
		if c.Cap == "" {
			callers[c.Caller], callers[string(c.Selects.Caller)] = true, true
			procedures[string(c.Selects.Procedure)] = true
		}
	}
	for _, hour := range s.hours(ctx, service) {
		for _, pair := range hour.GetPairs().GetPairs() {
			callers[pair.GetCaller()], procedures[pair.GetProcedure()] = true, true
		}
		for _, b := range hour.GetBuckets() {
			for _, c := range b.GetCallers() {
				callers[c.GetCaller()] = true
			}
		}
	}
	return names{first(callers), first(procedures)}
}

// hours returns who called in the last two hours, or nothing: names are a help
// and no more.
func (s site) hours(ctx context.Context, service string) []*grlv1.TrafficHour {
	answer, err := s.Services.View.GetTraffic(ctx, &grlv1.GetTrafficRequest{Service: service})
	if err != nil {
		return nil
	}
	hours := answer.GetHours()
	return hours[:min(len(hours), 2)]
}

// first returns the names to offer.
func first(all map[string]bool) []string {
	delete(all, "")
	delete(all, "*")
	sorted := slices.Sorted(maps.Keys(all))
	return sorted[:min(len(sorted), mostNames)]
}
