package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"

	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
)

// People signs people in and out. Whose request it is, and from where, is in the
// context as an access.Identity. An error with a method Refusal, which returns a
// text and an HTTP status, is shown to the person; any other one is logged.
type People interface {
	// Login returns the session of who knows the password of an account.
	Login(ctx context.Context, account, password string) (session string, ends time.Time, err error)
	// Logout ends the session of the request.
	Logout(ctx context.Context) error
	// MayCreateFirst reports whether the request may make the first account,
	// with the token of the link that it came by, if any.
	MayCreateFirst(ctx context.Context, token string) bool
	// CreateFirst makes that account, an admin, and returns a session of it.
	CreateFirst(ctx context.Context, token, account, password string) (session string, err error)
	// Provider reports whether one can sign in through an OpenID provider.
	Provider() bool
	// StartProvider returns where the browser signs in there, and the value of a
	// cookie until it is back; next is where it goes then.
	StartProvider(ctx context.Context, next string) (address, cookie string, err error)
	// FinishProvider takes the browser back with the provider's answer.
	FinishProvider(ctx context.Context, cookie string, answer url.Values) (session, next string, err error)
	// Service is what the page of the account calls, for its tokens and sessions;
	// it decides who may do what.
	Service() grlv1connect.AccessServiceHandler
}

const (
	maxForm    = 16 << 10 // bytes of a form
	maxNext    = 2 << 10  // bytes of the path that one goes on to
	flowSuffix = "-login" // of the cookie while the browser is at the provider
	flowLife   = 10 * time.Minute
)

// forms are the pages that take a form, if people can sign in.
var forms = map[string]bool{
	"/login": true, "/logout": true, "/first": true,
	"/account/tokens": true, "/account/tokens/revoke": true, "/account/sessions/end": true,
}

// routePeople adds the pages by which people come and go.
func (s *site) routePeople(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", s.serveLogin)
	mux.HandleFunc("POST /login", s.postLogin)
	mux.HandleFunc("POST /logout", s.postLogout)
	mux.HandleFunc("GET /first", s.serveFirst)
	mux.HandleFunc("POST /first", s.postFirst)
	mux.HandleFunc("GET /oidc/start", s.startProvider)
	mux.HandleFunc("GET /oidc/callback", s.finishProvider)
	mux.HandleFunc("GET /account", s.serveAccount)
	mux.HandleFunc("POST /account/tokens", s.makeToken)
	mux.HandleFunc("POST /account/tokens/revoke", s.revokeToken)
	mux.HandleFunc("POST /account/sessions/end", s.endSession)
}

// who is the person at the top of a page; the zero value is not shown.
type who struct {
	Name, Level string
	MayLeave    bool // has a session to end
	Open        bool // nobody needs to sign in
}

func whoOf(ctx context.Context) who {
	p := access.From(ctx).Person
	if p == nil {
		return who{}
	}
	return who{
		Name: printable(p.Name), Level: p.Level.String(),
		MayLeave: p.Session != "", Open: p.By == "open",
	}
}

// loginView is a form to sign in, or to make the first account.
type loginView struct {
	Problem  string // why the last attempt was refused; empty: there was none
	Account  string // as typed
	Next     string // where to go on to
	Token    string // of the link for the first account
	Provider string // where the provider's way begins; empty: there is none
}

func (s *site) serveLogin(w http.ResponseWriter, r *http.Request) {
	if whoOf(r.Context()).Open {
		http.Redirect(w, r, "/first", http.StatusSeeOther)
		return
	}
	s.renderLogin(w, r, http.StatusOK, loginView{Next: ownPath(r.URL.Query().Get("next"))})
}

func (s *site) renderLogin(w http.ResponseWriter, r *http.Request, status int, v loginView) {
	if s.people.Provider() {
		v.Provider = "/oidc/start?" + url.Values{"next": {v.Next}}.Encode()
	}
	s.render(w, r, status, loginPage(s.door(r, "Sign in"), v))
}

func (s *site) postLogin(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r) {
		return
	}
	account, next := r.PostForm.Get("account"), ownPath(r.PostForm.Get("next"))
	session, _, err := s.people.Login(r.Context(), account, r.PostForm.Get("password"))
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderLogin(w, r, status, loginView{Problem: text, Account: printable(account), Next: next})
		return
	}
	setSession(w, r, session)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s *site) postLogout(w http.ResponseWriter, r *http.Request) {
	if err := s.people.Logout(r.Context()); err != nil {
		text, status := s.refusal(r, err)
		s.render(w, r, status, refusedPage(s.door(r, "Not signed out"), text))
		return
	}
	setCookie(w, r, access.CookieName(r), "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (s *site) serveFirst(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if !s.people.MayCreateFirst(r.Context(), token) {
		s.render(w, r, http.StatusForbidden, refusedPage(s.door(r, "No first account to make"),
			"This link holds for an hour, once, and only while there is no account. The controller shows a new one when it starts without any."))
		return
	}
	s.render(w, r, http.StatusOK, firstPage(s.door(r, "Make the first account"), loginView{Token: token}))
}

func (s *site) postFirst(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r) {
		return
	}
	v := loginView{Account: printable(r.PostForm.Get("account")), Token: r.PostForm.Get("token")}
	page := s.door(r, "Make the first account")
	if r.PostForm.Get("password") != r.PostForm.Get("again") {
		v.Problem = "the two passwords differ"
		s.render(w, r, http.StatusUnprocessableEntity, firstPage(page, v))
		return
	}
	session, err := s.people.CreateFirst(r.Context(), v.Token, r.PostForm.Get("account"), r.PostForm.Get("password"))
	if err != nil {
		var status int
		v.Problem, status = s.refusal(r, err)
		s.render(w, r, status, firstPage(page, v))
		return
	}
	setSession(w, r, session)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *site) startProvider(w http.ResponseWriter, r *http.Request) {
	address, cookie, err := s.people.StartProvider(r.Context(), ownPath(r.URL.Query().Get("next")))
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderLogin(w, r, status, loginView{Problem: text, Next: "/"})
		return
	}
	setCookie(w, r, access.CookieName(r)+flowSuffix, cookie, int(flowLife/time.Second))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

func (s *site) finishProvider(w http.ResponseWriter, r *http.Request) {
	name, cookie := access.CookieName(r)+flowSuffix, ""
	if c, err := r.Cookie(name); err == nil {
		cookie = c.Value
	}
	setCookie(w, r, name, "", -1)
	session, next, err := s.people.FinishProvider(r.Context(), cookie, r.URL.Query())
	if err != nil {
		text, status := s.refusal(r, err)
		s.renderLogin(w, r, status, loginView{Problem: text, Next: "/"})
		return
	}
	setSession(w, r, session)
	http.Redirect(w, r, ownPath(next), http.StatusSeeOther)
}

// refusal returns what to tell a person of an error, with the status.
func (s *site) refusal(r *http.Request, err error) (text string, status int) {
	var known interface{ Refusal() (string, int) }
	if errors.As(err, &known) {
		return known.Refusal()
	}
	if api := (*connect.Error)(nil); errors.As(err, &api) {
		return api.Message(), statusOf(api.Code())
	}
	s.log.ErrorContext(r.Context(), "sign in or out", "path", r.URL.Path, "err", err)
	return "something went wrong here: see the log of the controller", http.StatusInternalServerError
}

// readForm reads the form of r, or answers that it cannot be read.
func readForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "This form cannot be read, or is too large.", http.StatusBadRequest)
		return false
	}
	return true
}

func setSession(w http.ResponseWriter, r *http.Request, session string) {
	setCookie(w, r, access.CookieName(r), session, 0)
}

// setCookie sets a cookie of this host that no script can read and no form of
// another site sends along; maxAge is in seconds, 0: until the browser ends, -1:
// now.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// ownPath returns next if it is a path of a page here, else "/": nobody who
// signs in is led to another site by a link.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	if u.Scheme != "" || u.Host != "" || forms[u.Path] || strings.HasPrefix(u.Path, "/oidc/") {
		return "/"
	}
	return cmp.Or(u.RequestURI(), "/")
}

// sentence returns a text, such as an error's, as people write one.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
