package account

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"

	"grl/web/format"
	"grl/web/page"
)

// accountView is the page of who is signed in: their API tokens and sessions, or
// everyone's for an admin.
type accountView struct {
	Problem  string // why something was refused; empty: nothing was
	Secret   string // of the token just made, shown this once
	Tokens   []tokenRow
	Sessions []sessionRow
	Roles    []page.Choice // that a token can have
	Days     []page.Choice
	Services bool // a token can be restricted to services
	MayMake  bool // signed in with a password, or through the provider
}

// tokenRow is an API token, ready to print.
type tokenRow struct{ ID, Name, Account, Role, Services, Made, Ends, Used string }

// sessionRow is a session, ready to print.
type sessionRow struct {
	ID, Account, From, Began, Used, Ends string
	This                                 bool // that of the page
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

func (s site) serveAccount(w http.ResponseWriter, r *http.Request) {
	s.renderAccount(w, r, http.StatusOK, accountView{})
}

// makeToken answers with the page rather than leading to it: the secret is shown
// once, and must not be in an address.
func (s site) makeToken(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	days, err := strconv.Atoi(r.PostForm.Get("days"))
	if err != nil || days < 1 || days > 366 {
		s.renderAccount(w, r, http.StatusUnprocessableEntity, accountView{Problem: "a token lasts from 1 to 366 days"})
		return
	}
	made, err := s.People.Service().CreateToken(r.Context(), &grlv1.CreateTokenRequest{
		Name:       r.PostForm.Get("name"),
		Role:       roleOf(r.PostForm.Get("role")),
		Services:   strings.Fields(r.PostForm.Get("services")),
		DurationMs: (time.Duration(days) * 24 * time.Hour).Milliseconds(),
	})
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderAccount(w, r, status, accountView{Problem: text})
		return
	}
	s.renderAccount(w, r, http.StatusOK, accountView{Secret: made.GetSecret()})
}

func (s site) revokeToken(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	_, err := s.People.Service().RevokeToken(r.Context(), &grlv1.RevokeTokenRequest{Id: r.PostForm.Get("id")})
	s.backToAccount(w, r, err)
}

func (s site) endSession(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	_, err := s.People.Service().EndSession(r.Context(), &grlv1.EndSessionRequest{Id: r.PostForm.Get("id")})
	s.backToAccount(w, r, err)
}

func (s site) backToAccount(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderAccount(w, r, status, accountView{Problem: text})
		return
	}
	http.Redirect(w, r, "/account", http.StatusSeeOther)
}

// renderAccount fills v and shows it.
func (s site) renderAccount(w http.ResponseWriter, r *http.Request, status int, v accountView) {
	p := s.Door(r, "Account")
	tokens, errT := s.People.Service().ListTokens(r.Context(), &grlv1.ListTokensRequest{})
	sessions, errS := s.People.Service().ListSessions(r.Context(), &grlv1.ListSessionsRequest{})
	if err := errors.Join(errT, errS); err != nil {
		text, status := s.refusal(r, err)
		s.Render(w, r, status, refusedPage(p, format.Sentence(text)))
		return
	}
	for _, t := range tokens.GetTokens() {
		v.Tokens = append(v.Tokens, newTokenRow(t))
	}
	who := access.From(r.Context()).Person
	for _, n := range sessions.GetSessions() {
		v.Sessions = append(v.Sessions, newSessionRow(n, who.Session))
	}
	for _, t := range tokenRoles {
		if t.level <= who.Level {
			v.Roles = append(v.Roles, page.Choice{Value: t.level.String(), Name: t.level.String()})
		}
	}
	v.Days, v.Services, v.MayMake = tokenDays, who.Level >= access.Editor, who.Session != ""
	s.Render(w, r, status, accountPage(p, v))
}

func newTokenRow(t *grlv1.Token) tokenRow {
	r := tokenRow{
		ID: t.GetId(), Name: format.Printable(t.GetName()), Account: format.Printable(t.GetAccount()), Role: roleText(t.GetRole()),
		Services: format.Printable(strings.Join(t.GetServices(), " ")),
		Made:     format.Moment(t.GetCreatedAtMs()), Ends: format.Moment(t.GetExpiresAtMs()), Used: "never",
	}
	if t.GetUsedAtMs() > 0 {
		r.Used = format.Moment(t.GetUsedAtMs())
	}
	return r
}

func newSessionRow(n *grlv1.Session, this string) sessionRow {
	return sessionRow{
		ID: n.GetId(), Account: format.Printable(n.GetAccount()), From: format.Printable(n.GetFrom()), This: n.GetId() == this,
		Began: format.Moment(n.GetCreatedAtMs()), Used: format.Moment(n.GetUsedAtMs()), Ends: format.Moment(n.GetExpiresAtMs()),
	}
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
