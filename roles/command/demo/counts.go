package demo

import "fmt"

// counted is what sidecars decided.
type counted struct {
	decisions uint64             // requests
	shadow    map[cellKey]uint64 // shadow drops
}

// cellKey names a cell: a bucket and, where it has one for each, a caller.
type cellKey struct{ bucket, caller string }

// counted adds up what the metrics of all sidecars say now.
func (p *plane) counted() (counted, error) {
	sum := counted{shadow: make(map[cellKey]uint64)}
	for _, s := range p.sidecars {
		requests, err := s.metric("grl_client_requests_total")
		if err != nil {
			return sum, err
		}
		for _, m := range requests {
			// Nothing is dropped before it, so "all" sees every request.
			if m.labels["bucket"] == bucketAll {
				sum.decisions += uint64(m.value)
			}
			if m.labels["decision"] == "shadow_dropped" && m.value > 0 {
				sum.shadow[cellKey{m.labels["bucket"], m.labels["caller"]}] += uint64(m.value)
			}
		}
	}
	return sum, nil
}

// directed reports whether the sidecar has had a directive.
func (s *sidecar) directed() (bool, error) {
	ages, err := s.metric("grl_client_directive_age_seconds")
	return len(ages) > 0, err
}

// series is one of a metric.
type series struct {
	labels map[string]string
	value  float64 // of a counter; of others 0
}

// metric returns the series of one metric of the sidecar.
func (s *sidecar) metric(name string) ([]series, error) {
	families, err := s.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", s.address, err)
	}
	var all []series
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			one := series{labels: make(map[string]string), value: m.GetCounter().GetValue()}
			for _, l := range m.GetLabel() {
				one.labels[l.GetName()] = l.GetValue()
			}
			all = append(all, one)
		}
	}
	return all, nil
}
