package account

import (
	"net/http"
	"net/url"
	"time"

	"grl/proto/access"

	"grl/web/format"
	"grl/web/page"
)

const (
	flowSuffix = "-login" // of the cookie while the browser is at the provider
	flowLife   = 10 * time.Minute
)

// loginView is a form to sign in, or to make the first account.
type loginView struct {
	Problem  string // why the last attempt was refused; empty: there was none
	Account  string // as typed
	Next     string // where to go on to
	Token    string // of the link for the first account
	Provider string // where the provider's way begins; empty: there is none
}

func (s site) serveLogin(w http.ResponseWriter, r *http.Request) {
	if open(r) {
		http.Redirect(w, r, "/first", http.StatusSeeOther)
		return
	}
	s.renderLogin(w, r, http.StatusOK, loginView{Next: page.OwnPath(r.URL.Query().Get("next"))})
}

func (s site) renderLogin(w http.ResponseWriter, r *http.Request, status int, v loginView) {
	if s.People.Provider() {
		v.Provider = "/oidc/start?" + url.Values{"next": {v.Next}}.Encode()
	}
	s.Render(w, r, status, loginPage(s.Door(r, "Sign in"), v))
}

func (s site) postLogin(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	account, next := r.PostForm.Get("account"), page.OwnPath(r.PostForm.Get("next"))
	session, _, err := s.People.Login(r.Context(), account, r.PostForm.Get("password"))
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderLogin(w, r, status, loginView{Problem: text, Account: format.Printable(account), Next: next})
		return
	}
	setSession(w, r, session)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s site) postLogout(w http.ResponseWriter, r *http.Request) {
	if err := s.People.Logout(r.Context()); err != nil {
		text, status := s.refusal(r, err)
		s.Render(w, r, status, refusedPage(s.Door(r, "Not signed out"), text))
		return
	}
	page.SetCookie(w, r, access.CookieName(r), "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (s site) serveFirst(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if !s.People.MayCreateFirst(r.Context(), token) {
		s.Render(w, r, http.StatusForbidden, refusedPage(s.Door(r, "No first account to make"),
			"This link holds for an hour, once, and only while there is no account. The controller shows a new one when it starts without any."))
		return
	}
	s.Render(w, r, http.StatusOK, firstPage(s.Door(r, "Make the first account"), loginView{Token: token}))
}

func (s site) postFirst(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v := loginView{Account: format.Printable(r.PostForm.Get("account")), Token: r.PostForm.Get("token")}
	p := s.Door(r, "Make the first account")
	if r.PostForm.Get("password") != r.PostForm.Get("again") {
		v.Problem = "the two passwords differ"
		s.Render(w, r, http.StatusUnprocessableEntity, firstPage(p, v))
		return
	}
	session, err := s.People.CreateFirst(r.Context(), v.Token, r.PostForm.Get("account"), r.PostForm.Get("password"))
	if err != nil {
		var status int
		v.Problem, status = s.refusal(r, err)
		s.Render(w, r, status, firstPage(p, v))
		return
	}
	setSession(w, r, session)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s site) startProvider(w http.ResponseWriter, r *http.Request) {
	address, cookie, err := s.People.StartProvider(r.Context(), page.OwnPath(r.URL.Query().Get("next")))
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderLogin(w, r, status, loginView{Problem: text, Next: "/"})
		return
	}
	page.SetCookie(w, r, access.CookieName(r)+flowSuffix, cookie, int(flowLife/time.Second))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

func (s site) finishProvider(w http.ResponseWriter, r *http.Request) {
	name, cookie := access.CookieName(r)+flowSuffix, ""
	if c, err := r.Cookie(name); err == nil {
		cookie = c.Value
	}
	page.SetCookie(w, r, name, "", -1)
	session, next, err := s.People.FinishProvider(r.Context(), cookie, r.URL.Query())
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderLogin(w, r, status, loginView{Problem: text, Next: "/"})
		return
	}
	setSession(w, r, session)
	http.Redirect(w, r, page.OwnPath(next), http.StatusSeeOther)
}

// refusal returns what to tell a person of an error, with the status.
func (s site) refusal(r *http.Request, err error) (text string, status int) {
	f := s.Refusal(r, err)
	return f.Title, f.Status
}

// open reports whether nobody needs to sign in.
func open(r *http.Request) bool {
	p := access.From(r.Context()).Person
	return p != nil && p.By == "open"
}

func setSession(w http.ResponseWriter, r *http.Request, session string) {
	page.SetCookie(w, r, access.CookieName(r), session, 0)
}
