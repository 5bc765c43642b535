// Package account has the pages by which people come and go, and of who may see
// and change what: accounts, sessions and API tokens.
package account

import (
	"net/http"

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
		{Pattern: "GET /access", Procedure: grlv1connect.AccessServiceListSessionsProcedure, Serve: s.serveAccess},
		{Pattern: "GET /account", Procedure: grlv1connect.AccessServiceListSessionsProcedure, Serve: toAccess},
		{Pattern: "POST /account/tokens", Procedure: grlv1connect.AccessServiceCreateTokenProcedure, Serve: s.makeToken},
		{Pattern: "POST /account/tokens/revoke", Procedure: grlv1connect.AccessServiceRevokeTokenProcedure, Serve: s.revokeToken},
		{Pattern: "POST /account/sessions/end", Procedure: grlv1connect.AccessServiceEndSessionProcedure, Serve: s.endSession},
		{Pattern: "GET /access/account", Procedure: grlv1connect.AccessServicePutAccountProcedure, Serve: s.serveAccount},
		{Pattern: "POST /access/account", Procedure: grlv1connect.AccessServicePutAccountProcedure, Serve: s.putAccount},
		{Pattern: "POST /access/account/delete", Procedure: grlv1connect.AccessServiceDeleteAccountProcedure, Serve: s.deleteAccount},
	}
}

// toAccess leads from where the page was before.
func toAccess(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/access", http.StatusSeeOther)
}
