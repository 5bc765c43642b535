package account

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"

	"grl/web/format"
	"grl/web/page"
)

// accessView is the page of who may see and change what: of one's own tokens and
// sessions, or of everyone's for an admin.
type accessView struct {
	Refusal  *page.Refusal // nil: nothing was refused
	Secret   string        // of the token just made, shown this once
	Accounts []accountRow
	Tokens   []tokenRow
	Sessions []sessionRow
	Form     tokenForm
	Admin    bool // sees everyone's
	MayMake  bool // a token: signed in with a password, or through the provider
}

// tokenForm makes a token.
type tokenForm struct {
	Name, Role, Days, Services page.Field
	Roles                      []page.Choice // that a token can have
	Restrict                   bool          // it can be restricted to services
}

// tokenRow is an API token, ready to print.
type tokenRow struct {
	ID, Name, Account, Role, Services string
	Made, Ends, Used                  format.Stamp
	Never                             bool // used
}

// sessionRow is a session, ready to print.
type sessionRow struct {
	ID, Account, From string
	Began, Used, Ends format.Stamp
	This              bool // that of the page
}

// tokenDays are how long a token can last.
var tokenDays = []page.Choice{{Value: "90", Name: "90 days"}, {Value: "1", Name: "1 day"}, {Value: "7", Name: "7 days"}, {Value: "30", Name: "30 days"}, {Value: "366", Name: "366 days"}}

// tokenRoles are those a person of a level can give, the least first.
var tokenRoles = []struct {
	level access.Level
	role  grlv1.AccountRole
}{
	{access.Viewer, grlv1.AccountRole_ACCOUNT_ROLE_VIEWER},
	{access.Editor, grlv1.AccountRole_ACCOUNT_ROLE_EDITOR},
	{access.Admin, grlv1.AccountRole_ACCOUNT_ROLE_ADMIN},
}

func (s site) serveAccess(w http.ResponseWriter, r *http.Request) {
	s.renderAccess(w, r, http.StatusOK, accessView{})
}

// makeToken answers with the page rather than leading to it: the secret is shown
// once, and must not be in an address.
func (s site) makeToken(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v := accessView{Form: newTokenForm(who(r).Level, r.PostForm.Get("name"), r.PostForm.Get("role"), r.PostForm.Get("days"), r.PostForm.Get("services"))}
	days, err := strconv.Atoi(v.Form.Days.Value)
	if err != nil || days < 1 || days > 366 {
		v.Form.Days.Error = "A token lasts from 1 to 366 days."
		v.Refusal = &page.Refusal{Title: v.Form.Days.Error}
		s.renderAccess(w, r, http.StatusUnprocessableEntity, v)
		return
	}
	made, err := s.People.Service().CreateToken(r.Context(), &grlv1.CreateTokenRequest{
		Name:       v.Form.Name.Value,
		Role:       roleOf(v.Form.Role.Value),
		Services:   strings.Fields(v.Form.Services.Value),
		DurationMs: (time.Duration(days) * 24 * time.Hour).Milliseconds(),
	})
	if err != nil {
		s.refuseAccess(w, r, v, err)
		return
	}
	s.renderAccess(w, r, http.StatusOK, accessView{Secret: made.GetSecret()})
}

func (s site) revokeToken(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	id := r.PostForm.Get("id")
	_, err := s.People.Service().RevokeToken(r.Context(), &grlv1.RevokeTokenRequest{Id: id})
	s.backToAccess(w, r, "revoked", id, err)
}

// endSession ends one session, or all of an account.
func (s site) endSession(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	if account := r.PostForm.Get("account"); account != "" {
		s.backToAccess(w, r, "out", account, s.endSessionsOf(r, account))
		return
	}
	id := r.PostForm.Get("id")
	_, err := s.People.Service().EndSession(r.Context(), &grlv1.EndSessionRequest{Id: id})
	s.backToAccess(w, r, "ended", id, err)
}

func (s site) endSessionsOf(r *http.Request, account string) error {
	sessions, err := s.People.Service().ListSessions(r.Context(), &grlv1.ListSessionsRequest{})
	if err != nil {
		return err
	}
	for _, n := range sessions.GetSessions() {
		if n.GetAccount() != account {
			continue
		}
		_, err := s.People.Service().EndSession(r.Context(), &grlv1.EndSessionRequest{Id: n.GetId()})
		if err != nil && connect.CodeOf(err) != connect.CodeNotFound { // it ended meanwhile
			return err
		}
	}
	return nil
}

// backToAccess leads to the page, which says what became of what was meant.
func (s site) backToAccess(w http.ResponseWriter, r *http.Request, done, what string, err error) {
	if err != nil {
		s.refuseAccess(w, r, accessView{}, err)
		return
	}
	http.Redirect(w, r, "/access?"+url.Values{done: {what}}.Encode(), http.StatusSeeOther)
}

func (s site) refuseAccess(w http.ResponseWriter, r *http.Request, v accessView, err error) {
	refusal := s.Refusal(r, err)
	v.Refusal = &refusal
	s.renderAccess(w, r, refusal.Status, v)
}

// listed is what the service lists of accounts, tokens and sessions.
type listed struct {
	accounts []*grlv1.Account
	tokens   []*grlv1.Token
	sessions []*grlv1.Session
}

func (s site) list(r *http.Request) (listed, error) {
	service := s.People.Service()
	accounts, errA := service.ListAccounts(r.Context(), &grlv1.ListAccountsRequest{})
	tokens, errT := service.ListTokens(r.Context(), &grlv1.ListTokensRequest{})
	sessions, errS := service.ListSessions(r.Context(), &grlv1.ListSessionsRequest{})
	return listed{accounts.GetAccounts(), tokens.GetTokens(), sessions.GetSessions()}, errors.Join(errA, errT, errS)
}

// renderAccess fills v and shows it.
func (s site) renderAccess(w http.ResponseWriter, r *http.Request, status int, v accessView) {
	p, now := s.Page(r, "Access", "/access"), time.Now()
	p.AsOf = format.Stamp{} // nothing here moves
	all, err := s.list(r)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	self := who(r)
	v.Admin = self.Level >= access.Admin
	for _, a := range all.accounts {
		v.Accounts = append(v.Accounts, newAccountRow(a, all, now))
	}
	for _, t := range all.tokens {
		v.Tokens = append(v.Tokens, newTokenRow(t, now))
	}
	slices.SortStableFunc(all.sessions, func(a, b *grlv1.Session) int {
		switch self.Session { // that of the page comes first, then who was here last
		case a.GetId():
			return -1
		case b.GetId():
			return 1
		}
		return cmp.Compare(b.GetUsedAtMs(), a.GetUsedAtMs())
	})
	for _, n := range all.sessions {
		v.Sessions = append(v.Sessions, newSessionRow(n, self.Session, now))
	}
	if v.Form.Roles == nil {
		v.Form = newTokenForm(self.Level, "", "viewer", "90", "")
	}
	v.MayMake = self.Session != ""
	p.Notices = append(p.Notices, all.done(r.URL.Query())...)
	s.Render(w, r, status, accessPage(p, v))
}

// done says what became of what a form meant, by what is there now.
func (l listed) done(q url.Values) []page.Notice {
	good, bad := func(title string) page.Notice { return page.Notice{Kind: "good", Title: title} }, func(title string) page.Notice { return page.Notice{Kind: "warn", Title: title} }
	there := map[string]func(id string) bool{
		"revoked": func(id string) bool {
			return slices.ContainsFunc(l.tokens, func(t *grlv1.Token) bool { return t.GetId() == id })
		},
		"ended": func(id string) bool {
			return slices.ContainsFunc(l.sessions, func(n *grlv1.Session) bool { return n.GetId() == id })
		},
		"out": func(name string) bool {
			return slices.ContainsFunc(l.sessions, func(n *grlv1.Session) bool { return n.GetAccount() == name })
		},
		"deleted": func(name string) bool {
			return slices.ContainsFunc(l.accounts, func(a *grlv1.Account) bool { return a.GetName() == name })
		},
	}
	words := []struct{ key, gone, still string }{
		{"revoked", "The token is revoked: nobody signs in with it any more", "The token is still there"},
		{"ended", "The session is ended", "The session is still open"},
		{"out", "All sessions of the account are ended", "The account has a session again"},
		{"deleted", "The account is deleted, with its sessions and tokens", "The account is still there"},
	}
	var out []page.Notice
	for _, w := range words {
		switch id := q.Get(w.key); {
		case id == "":
		case there[w.key](id):
			out = append(out, bad(w.still))
		default:
			out = append(out, good(w.gone))
		}
	}
	return out
}

// newTokenForm is the form for a person of a level, as it was filled in.
func newTokenForm(level access.Level, name, role, days, services string) tokenForm {
	f := tokenForm{
		Restrict: level >= access.Editor,
		Name:     page.Field{Name: "name", Label: "What it is for", Value: name, Max: 64, Required: true},
		Role:     page.Field{Name: "role", Label: "What it may do", Value: role},
		Days:     page.Field{Name: "days", Label: "How long", Value: days},
		Services: page.Field{Name: "services", Label: "Services", Value: services, Max: 4096, Hint: "Of an editor: those whose limits it may change, with spaces between. Empty: those of the account."},
	}
	for _, t := range tokenRoles {
		if t.level <= level {
			f.Roles = append(f.Roles, page.Choice{Value: t.level.String(), Name: t.level.String()})
		}
	}
	return f
}

func newTokenRow(t *grlv1.Token, now time.Time) tokenRow {
	return tokenRow{
		ID: t.GetId(), Name: format.Printable(t.GetName()), Account: format.Printable(t.GetAccount()), Role: roleText(t.GetRole()),
		Services: format.Printable(strings.Join(t.GetServices(), " ")),
		Made:     stamp(t.GetCreatedAtMs(), now), Ends: stamp(t.GetExpiresAtMs(), now), Used: stamp(t.GetUsedAtMs(), now), Never: t.GetUsedAtMs() == 0,
	}
}

func newSessionRow(n *grlv1.Session, this string, now time.Time) sessionRow {
	return sessionRow{
		ID: n.GetId(), Account: format.Printable(n.GetAccount()), From: format.Printable(n.GetFrom()), This: n.GetId() == this,
		Began: stamp(n.GetCreatedAtMs(), now), Used: stamp(n.GetUsedAtMs(), now), Ends: stamp(n.GetExpiresAtMs(), now),
	}
}

// who is the person who asks, who may be nobody.
func who(r *http.Request) access.Person {
	if p := access.From(r.Context()).Person; p != nil {
		return *p
	}
	return access.Person{}
}

// stamp prepares a time in Unix milliseconds; one to come is printed as one
// equally long ago would be.
func stamp(ms int64, now time.Time) format.Stamp {
	t := time.UnixMilli(ms)
	if t.After(now) {
		return format.NewStamp(t, t.Add(t.Sub(now)))
	}
	return format.NewStamp(t, now)
}

func roleOf(text string) grlv1.AccountRole {
	for _, t := range tokenRoles {
		if t.level.String() == text {
			return t.role
		}
	}
	return grlv1.AccountRole_ACCOUNT_ROLE_UNSPECIFIED
}

func roleText(role grlv1.AccountRole) string {
	for _, t := range tokenRoles {
		if t.role == role {
			return t.level.String()
		}
	}
	return "unknown"
}
