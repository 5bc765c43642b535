package rolestest

import (
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

// Buckets returns what the controller's API says of the buckets.
func (p *Plane) Buckets() []*grlv1.BucketView {
	p.t.Helper()
	r, err := p.view().ListBuckets(p.t.Context(), &grlv1.ListBucketsRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.GetBuckets()
}

// Fleet returns what the controller's API says of the tree.
func (p *Plane) Fleet() *grlv1.GetFleetResponse {
	p.t.Helper()
	r, err := p.view().GetFleet(p.t.Context(), &grlv1.GetFleetRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// History returns what the controller's API has of a bucket's global cell since
// the beginning.
func (p *Plane) History(bucket string) []*grlv1.Minute {
	p.t.Helper()
	r, err := p.view().GetHistory(p.t.Context(), &grlv1.GetHistoryRequest{Bucket: bucket, FromMs: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.GetMinutes()
}

func (p *Plane) view() grlv1connect.ViewServiceClient {
	return grlv1connect.NewViewServiceClient(p.Network.Client(p.t), "http://controller")
}
