package rolestest

import (
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

// Buckets returns what the API of the controller without a parent says of the
// buckets.
func (p *Plane) Buckets() []*grlv1.BucketView {
	p.t.Helper()
	return p.BucketsAt(global)
}

// BucketsAt returns what the API of a controller says of the buckets.
func (p *Plane) BucketsAt(controller string) []*grlv1.BucketView {
	p.t.Helper()
	r, err := p.view(controller).ListBuckets(p.t.Context(), &grlv1.ListBucketsRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.GetBuckets()
}

// Fleet returns what the API of the controller without a parent says of the
// tree.
func (p *Plane) Fleet() *grlv1.GetFleetResponse {
	p.t.Helper()
	return p.FleetAt(global)
}

// FleetAt returns what the API of a controller says of the tree.
func (p *Plane) FleetAt(controller string) *grlv1.GetFleetResponse {
	p.t.Helper()
	r, err := p.view(controller).GetFleet(p.t.Context(), &grlv1.GetFleetRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// History returns what the API of the controller without a parent has of a
// bucket's global cell since the beginning.
func (p *Plane) History(bucket string) []*grlv1.Minute {
	p.t.Helper()
	r, err := p.view(global).GetHistory(p.t.Context(), &grlv1.GetHistoryRequest{Bucket: bucket, FromMs: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.GetMinutes()
}

// Count returns a counter of a host, or the sum of those of that name.
func (p *Plane) Count(host, name string) float64 {
	p.t.Helper()
	families, err := p.registries[host].Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// Traffic returns what the API of a controller says of who sends to a service.
func (p *Plane) Traffic(controller, service string) []*grlv1.TrafficHour {
	p.t.Helper()
	r, err := p.view(controller).GetTraffic(p.t.Context(), &grlv1.GetTrafficRequest{Service: service})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.GetHours()
}

func (p *Plane) view(controller string) grlv1connect.ViewServiceClient {
	return grlv1connect.NewViewServiceClient(p.Network.Client(p.t), "http://"+controller)
}
