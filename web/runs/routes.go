// Package runs has the pages of what the RLC computed: its cycles, what one found
// of each bucket, and what people decide of it.
package runs

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// site serves the pages.
type site struct{ *page.Site }

// Routes returns the pages and their forms.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /rlc", Procedure: grlv1connect.RLCServiceListRunsProcedure, Serve: s.serveList},
		{Pattern: "POST /rlc/request", Procedure: grlv1connect.RLCServiceRequestRunProcedure, Serve: s.request},
		{Pattern: "GET /rlc/run", Procedure: grlv1connect.RLCServiceGetRunProcedure, Serve: s.serveRun},
		{Pattern: "POST /rlc/decide", Procedure: grlv1connect.RLCServiceDecideProposalsProcedure, Serve: s.decide},
		{Pattern: "GET /rlc/rollback", Procedure: grlv1connect.ConfigServiceRollbackProcedure, Serve: s.serveRollback},
		{Pattern: "POST /rlc/rollback", Procedure: grlv1connect.ConfigServiceRollbackProcedure, Serve: s.rollback},
	}
}

// runPath returns the address of the page of a run.
func runPath(id uint64) string { return "/rlc/run?id=" + strconv.FormatUint(id, 10) }

// number reads a number of a query or form; 0 if it is none.
func number(v url.Values, key string) uint64 {
	n, err := strconv.ParseUint(v.Get(key), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// moment is a time in Unix milliseconds, ready to print; zero where there is none.
func moment(ms int64) format.Stamp {
	if ms == 0 {
		return format.Stamp{}
	}
	return format.NewStamp(time.UnixMilli(ms), time.Now())
}

// errNoRun says that the address names no run.
func errNoRun() error {
	return connect.NewError(connect.CodeNotFound, errors.New("there is no such run"))
}

// editable returns which services who looks may change.
func (s site) editable(ctx context.Context) func(service string) bool {
	p := access.From(ctx).Person
	if p == nil || !page.May(ctx, grlv1connect.RLCServiceDecideProposalsProcedure) {
		return func(string) bool { return false }
	}
	owned := make(map[string]bool)
	if p.Level != access.Admin && len(p.Owners) > 0 {
		for _, c := range s.Backend.Cells() {
			if slices.Contains(p.Owners, c.Owner) {
				owned[c.Service] = true
			}
		}
	}
	return func(service string) bool { return owned[service] || page.MayEdit(ctx, service, "") }
}
