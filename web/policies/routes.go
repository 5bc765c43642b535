// Package policies has the pages of how limits are computed: the policies in the
// order in which they match, one of them as a form or as YAML, what it would have
// done in the past, and who changed what.
package policies

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"grl/policy"
	"grl/policy/policyfile"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// site serves the pages.
type site struct {
	*page.Site
	trials *trials
}

// Routes returns the pages and their forms.
func Routes(p *page.Site) []page.Route {
	s := site{p, newTrials()}
	return []page.Route{
		{Pattern: "GET /policies", Procedure: grlv1connect.PolicyServiceGetPoliciesProcedure, Serve: s.serveList},
		{Pattern: "GET /policies/show", Procedure: grlv1connect.PolicyServiceGetPoliciesProcedure, Serve: s.serveOne},
		{Pattern: "GET /policies/buckets", Procedure: grlv1connect.PolicyServiceGetPoliciesProcedure, Serve: s.serveBuckets},
		{Pattern: "GET /policies/trial", Procedure: grlv1connect.PolicyServiceGetPoliciesProcedure, Serve: s.serveTrial},
		{Pattern: "GET /policies/version", Procedure: grlv1connect.PolicyServiceListPolicyRevisionsProcedure, Serve: s.serveVersion},
		{Pattern: "GET /policies/new", Procedure: grlv1connect.PolicyServiceApplyPoliciesProcedure, Serve: s.serveNew},
		{Pattern: "POST /policies/preview", Procedure: grlv1connect.PolicyServiceApplyPoliciesProcedure, Serve: s.preview},
		{Pattern: "POST /policies/save", Procedure: grlv1connect.PolicyServiceApplyPoliciesProcedure, Serve: s.save},
		{Pattern: "POST /policies/delete", Procedure: grlv1connect.PolicyServiceDeletePolicyProcedure, Serve: s.remove},
		{Pattern: "POST /policies/rollback", Procedure: grlv1connect.PolicyServiceRollbackPoliciesProcedure, Serve: s.rollback},
	}
}

// set is the policies of one revision.
type set struct {
	revision *grlv1.Revision
	policies []*grlv1.Policy // by name
	specs    []policy.Spec   // of those that can be read, in the order of matching
}

// read returns the policies of a revision; 0: the present one.
func (s site) read(ctx context.Context, revision uint64) (set, error) {
	answer, err := s.Services.Policy.GetPolicies(ctx, &grlv1.GetPoliciesRequest{Revision: revision})
	if err != nil {
		return set{}, err
	}
	out := set{revision: answer.GetRevision(), policies: answer.GetPolicies()}
	for _, p := range out.policies {
		if spec, err := policyfile.Parse(p.GetName(), p.GetData()); err == nil {
			out.specs = append(out.specs, spec)
		}
	}
	policyfile.Sort(out.specs)
	return out, nil
}

// at returns the policies of a revision that a form was made from; 0: there were
// none.
func (s site) at(ctx context.Context, revision uint64) (set, error) {
	if revision == 0 {
		return set{}, nil
	}
	return s.read(ctx, revision)
}

// of returns a policy by its name, nil if there is none.
func (s set) of(name string) *grlv1.Policy {
	i := slices.IndexFunc(s.policies, func(p *grlv1.Policy) bool { return p.GetName() == name })
	if i < 0 {
		return nil
	}
	return s.policies[i]
}

// spec returns what a policy says, nil if it is not there or cannot be read.
func (s set) spec(name string) *policy.Spec {
	i := slices.IndexFunc(s.specs, func(p policy.Spec) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.specs[i]
}

// path returns an address of these pages with a query; empty values are left out.
func path(of string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return of
	}
	return of + "?" + q.Encode()
}

// number reads a number of a query or form; 0 if it is none.
func number(v url.Values, key string) uint64 {
	n, err := strconv.ParseUint(v.Get(key), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }

// moment is a time in Unix milliseconds, ready to print.
func moment(ms int64) format.Stamp { return format.NewStamp(time.UnixMilli(ms), time.Now()) }

// mayEdit reports whether who looks may change a policy: that of one service
// which they may change.
func (s site) mayEdit(ctx context.Context, spec *policy.Spec) bool {
	p := access.From(ctx).Person
	switch {
	case p == nil || !page.May(ctx, grlv1connect.PolicyServiceApplyPoliciesProcedure):
		return false
	case p.Level == access.Admin:
		return true
	case spec == nil || spec.Match.Service == "" || !exact(string(spec.Match.Service)):
		return false
	}
	service := string(spec.Match.Service)
	return page.MayEdit(ctx, service, s.owner(*p, service))
}

// exact reports whether a pattern selects one name.
func exact(pattern string) bool { return pattern[len(pattern)-1] != '*' }

// owner returns who owns a service, where that matters to a person.
func (s site) owner(p access.Person, service string) string {
	if len(p.Owners) == 0 {
		return ""
	}
	for _, c := range s.Backend.Cells() {
		if c.Service == service {
			return c.Owner
		}
	}
	return ""
}
