package bucket

import (
	"context"
	"net/url"

	"grl/limiter"
	"grl/policy"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// governed says which policy computes the limit of a bucket.
type governed struct {
	Name string // of the policy; "": none computes it
	Note string // "peak, mode apply"
	Path string
}

// governed finds the policy of a bucket; none if b is nil, or policies are not
// for this controller or this person.
func (s site) governed(ctx context.Context, b *limiter.Bucket) (governed, error) {
	if b == nil || s.Services.Policy == nil || !page.May(ctx, grlv1connect.PolicyServiceGetPoliciesProcedure) {
		return governed{}, nil
	}
	got, err := s.Services.Policy.GetPolicies(ctx, &grlv1.GetPoliciesRequest{})
	if err != nil {
		return governed{}, err
	}
	var specs []policy.Spec
	for _, p := range got.GetPolicies() {
		// One that this version cannot read computes nothing here.
		if spec, err := policyfile.Parse(p.GetName(), p.GetData()); err == nil {
			specs = append(specs, spec)
		}
	}
	spec := policyfile.Choose(specs, *b)
	if spec == nil {
		return governed{}, nil
	}
	return governed{
		Name: format.Printable(spec.Name), Note: spec.Kind + ", mode " + spec.Mode.String(),
		Path: "/policies/show?" + url.Values{"name": {spec.Name}}.Encode(),
	}, nil
}
