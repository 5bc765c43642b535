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

// names are what the fields offer, sorted.
type names struct{ Services, Callers, Procedures []string }

// names collects what is known: services with limits and those that are seen,
// and who calls the chosen service by what.
func (s site) names(ctx context.Context, service string, cells []page.Cell) names {
	services, callers, procedures := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range cells {
		c := &cells[i]
		if c.Cap != "" {
			continue
		}
		services[c.Service] = true
		if c.Service != service {
			continue
		}
		callers[c.Caller], callers[string(c.Selects.Caller)] = true, true
		procedures[string(c.Selects.Procedure)] = true
	}
	pairs := func(p *grlv1.ServicePairs) {
		services[p.GetService()] = true
		if p.GetService() != service {
			return
		}
		for _, pair := range p.GetPairs() {
			callers[pair.GetCaller()], procedures[pair.GetProcedure()] = true, true
		}
	}
	for _, hour := range s.hours(ctx, "") {
		for _, p := range hour.GetServices() {
			pairs(p)
		}
	}
	if service != "" {
		for _, hour := range s.hours(ctx, service) {
			pairs(hour.GetPairs())
			for _, b := range hour.GetBuckets() {
				for _, c := range b.GetCallers() {
					callers[c.GetCaller()] = true
				}
			}
		}
	}
	return names{first(services), first(callers), first(procedures)}
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
