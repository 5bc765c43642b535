// Package account has the pages by which people come and go, and of what is
// theirs: sessions and API tokens.
package account

import (
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the pages.
type site struct{ *page.Site }

// Routes returns the pages; People of the site is not nil.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /login", Serve: s.serveLogin},
		{Pattern: "POST /login", Serve: s.postLogin},
		{Pattern: "POST /logout", Serve: s.postLogout},
		{Pattern: "GET /first", Serve: s.serveFirst},
		{Pattern: "POST /first", Serve: s.postFirst},
		{Pattern: "GET /oidc/start", Serve: s.startProvider},
		{Pattern: "GET /oidc/callback", Serve: s.finishProvider},
		{Pattern: "GET /account", Procedure: grlv1connect.AccessServiceListSessionsProcedure, Serve: s.serveAccount},
		{Pattern: "POST /account/tokens", Procedure: grlv1connect.AccessServiceCreateTokenProcedure, Serve: s.makeToken},
		{Pattern: "POST /account/tokens/revoke", Procedure: grlv1connect.AccessServiceRevokeTokenProcedure, Serve: s.revokeToken},
		{Pattern: "POST /account/sessions/end", Procedure: grlv1connect.AccessServiceEndSessionProcedure, Serve: s.endSession},
	}
}
