package account_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web"
	"grl/web/page"
	"grl/web/pagetest"
)

// formPaths are the pages that take a form.
var formPaths = map[string]bool{
	"/login": true, "/logout": true, "/first": true,
	"/account/tokens": true, "/account/tokens/revoke": true, "/account/sessions/end": true,
	"/access/account/delete": true,
}

// refused is an error that a person may read.
type refused struct {
	text   string
	status int
}

func (r refused) Error() string          { return r.text }
func (r refused) Refusal() (string, int) { return r.text, r.status }

// persons is a People with one account, ada, and one invitation.
type persons struct {
	provider bool
	left     bool // Logout was called
	api      accessAPI
}

func (p *persons) Login(_ context.Context, account, password string) (string, time.Time, error) {
	if account != "ada" || password != "a long password" {
		return "", time.Time{}, refused{"account or password is wrong", http.StatusForbidden}
	}
	return "session-of-ada", time.Now().Add(time.Hour), nil
}

func (p *persons) Logout(context.Context) error {
	p.left = true
	return nil
}

func (p *persons) MayCreateFirst(_ context.Context, token string) bool { return token == "invited" }

func (p *persons) CreateFirst(_ context.Context, token, account, _ string) (string, error) {
	if token != "invited" {
		return "", refused{"this link is not valid any more", http.StatusForbidden}
	}
	return "session-of-" + account, nil
}

func (p *persons) Service() grlv1connect.AccessServiceHandler { return &p.api }

func (p *persons) Provider() bool { return p.provider }

func (p *persons) StartProvider(_ context.Context, next string) (string, string, error) {
	return "https://login.example.com/auth?state=s", "flow " + next, nil
}

func (p *persons) FinishProvider(_ context.Context, cookie string, answer url.Values) (string, string, error) {
	next, ok := strings.CutPrefix(cookie, "flow ")
	if !ok || answer.Get("code") != "good" {
		return "", "", refused{"this login was not begun here", http.StatusForbidden}
	}
	return "session-of-grace", next, nil
}

// asked is one request to the dashboard.
type asked struct {
	method, target string
	form           url.Values
	cookies        []*http.Cookie
	tls            bool
	person         *access.Person
}

func ask(t *testing.T, p *persons, q asked) *http.Response {
	t.Helper()
	r := httptest.NewRequest(q.method, "http://localhost:7070"+q.target, strings.NewReader(q.form.Encode()))
	if q.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if q.tls {
		r.TLS = &tls.ConnectionState{}
	}
	for _, c := range q.cookies {
		r.AddCookie(c)
	}
	r = r.WithContext(access.With(r.Context(), access.Identity{Person: q.person}))
	w := httptest.NewRecorder()
	web.New(web.Options{Backend: pagetest.Memory{}, People: p}).ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func cookieOf(r *http.Response, name string) *http.Cookie {
	for _, c := range r.Cookies() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func TestSignIn(t *testing.T) {
	right := url.Values{"account": {"ada"}, "password": {"a long password"}, "next": {"/buckets?q=pay"}}
	for _, tt := range []struct {
		name, cookie string
		tls          bool
	}{
		{"plain text on loopback", "grl", false},
		{"TLS", "__Host-grl", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := ask(t, &persons{}, asked{method: "POST", target: "/login", form: right, tls: tt.tls})
			if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/buckets?q=pay" {
				t.Errorf("status %d to %q, want 303 to where the person wanted to go", r.StatusCode, r.Header.Get("Location"))
			}
			c := cookieOf(r, tt.cookie)
			if c == nil {
				t.Fatalf("no cookie %q: %v", tt.cookie, r.Header)
			}
			if c.Value != "session-of-ada" || !c.HttpOnly || c.Secure != tt.tls || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("cookie %v", c)
			}
		})
	}
}

func TestWrongPasswordShowsTheFormAgain(t *testing.T) {
	form := url.Values{"account": {`ada"><script>`}, "password": {"a secret that is wrong"}, "next": {"/fleet"}}
	r := ask(t, &persons{}, asked{method: "POST", target: "/login", form: form})
	body := read(t, r)
	if r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 {
		t.Errorf("status %d, cookies %v", r.StatusCode, r.Cookies())
	}
	for _, want := range []string{"Account or password is wrong.", `role="alert"`, `aria-invalid="true"`, `value="/fleet"`, "ada&#34;&gt;&lt;script&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the page:\n%s", want, body)
		}
	}
	if strings.Contains(body, "a secret that is wrong") {
		t.Error("the password is on the page")
	}
}

func TestSignOut(t *testing.T) {
	p := &persons{}
	if r := ask(t, p, asked{method: "GET", target: "/logout"}); r.StatusCode != http.StatusNotFound || p.left {
		t.Errorf("GET: status %d, signed out %v; a link must not sign out", r.StatusCode, p.left)
	}
	r := ask(t, p, asked{method: "POST", target: "/logout"})
	if c := cookieOf(r, "grl"); r.StatusCode != http.StatusSeeOther || !p.left || c == nil || c.MaxAge >= 0 {
		t.Errorf("status %d, signed out %v, cookie %v", r.StatusCode, p.left, c)
	}
}

func TestFirstAccount(t *testing.T) {
	p := &persons{}
	if r := ask(t, p, asked{method: "GET", target: "/first?token=guessed"}); r.StatusCode != http.StatusForbidden {
		t.Errorf("with another token: status %d", r.StatusCode)
	}
	r := ask(t, p, asked{method: "GET", target: "/first?token=invited"})
	if body := read(t, r); r.StatusCode != http.StatusOK || !strings.Contains(body, `name="token" value="invited"`) {
		t.Errorf("status %d:\n%s", r.StatusCode, body)
	}
	form := url.Values{"token": {"invited"}, "account": {"ada"}, "password": {"a long password"}, "again": {"another password"}}
	r = ask(t, p, asked{method: "POST", target: "/first", form: form})
	if body := read(t, r); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, "The two passwords differ.") {
		t.Errorf("status %d:\n%s", r.StatusCode, body)
	}
	form.Set("again", "a long password")
	r = ask(t, p, asked{method: "POST", target: "/first", form: form})
	if c := cookieOf(r, "grl"); r.StatusCode != http.StatusSeeOther || c == nil || c.Value != "session-of-ada" {
		t.Errorf("status %d, cookie %v", r.StatusCode, c)
	}
}

func TestProvider(t *testing.T) {
	if body := read(t, ask(t, &persons{}, asked{method: "GET", target: "/login"})); strings.Contains(body, "/oidc/") {
		t.Error("a provider is offered where there is none")
	}
	p := &persons{provider: true}
	if body := read(t, ask(t, p, asked{method: "GET", target: "/login?next=/fleet"})); !strings.Contains(body, `href="/oidc/start?next=%2Ffleet"`) {
		t.Errorf("no way to the provider:\n%s", body)
	}
	start := ask(t, p, asked{method: "GET", target: "/oidc/start?next=/fleet"})
	flow := cookieOf(start, "grl-login")
	if start.StatusCode != http.StatusSeeOther || start.Header.Get("Location") != "https://login.example.com/auth?state=s" || flow == nil {
		t.Fatalf("status %d to %q, cookie %v", start.StatusCode, start.Header.Get("Location"), flow)
	}
	end := ask(t, p, asked{method: "GET", target: "/oidc/callback?code=good&state=s", cookies: []*http.Cookie{flow}})
	if c := cookieOf(end, "grl"); end.StatusCode != http.StatusSeeOther || end.Header.Get("Location") != "/fleet" || c == nil || c.Value != "session-of-grace" {
		t.Errorf("status %d to %q, cookie %v", end.StatusCode, end.Header.Get("Location"), c)
	}
	if c := cookieOf(end, "grl-login"); c == nil || c.MaxAge >= 0 {
		t.Errorf("the cookie of the flow stays: %v", c)
	}
	if r := ask(t, p, asked{method: "GET", target: "/oidc/callback?code=good&state=s"}); r.StatusCode != http.StatusForbidden || cookieOf(r, "grl") != nil {
		t.Errorf("without the cookie: status %d", r.StatusCode)
	}
}

func TestOwnPath(t *testing.T) {
	for next, want := range map[string]string{
		"/":                              "/",
		"/buckets?q=a%2Fb&x=1":           "/buckets?q=a%2Fb&x=1",
		"":                               "/",
		"//evil.example":                 "/",
		"///evil.example":                "/",
		"/\\evil.example":                "/",
		"\\\\evil.example":               "/",
		"https://evil.example/":          "/",
		"http:/fleet":                    "/",
		"evil.example":                   "/",
		"javascript:alert(1)":            "/",
		"/\tevil":                        "/",
		"/\n/evil.example":               "/",
		"/login?next=/fleet":             "/",
		"/logout":                        "/",
		"/oidc/start":                    "/",
		"/fleet#//evil.example":          "/fleet",
		"/" + strings.Repeat("a", 2<<10): "/",
	} {
		if got := page.OwnPath(next); got != want {
			t.Errorf("page.OwnPath(%.40q) = %q, want %q", next, got, want)
		}
	}
}

func TestMethodsOfForms(t *testing.T) {
	for _, tt := range []struct {
		method, target, allow string
		want                  int
	}{
		{"POST", "/", "GET, HEAD", 405},
		{"POST", "/oidc/start", "GET, HEAD", 405},
		{"POST", "/oidc/callback", "GET, HEAD", 405},
		{"POST", "/login/", "GET, HEAD", 405},
		{"PUT", "/login", "GET, HEAD, POST", 405},
		{"DELETE", "/logout", "GET, HEAD, POST", 405},
	} {
		r := ask(t, &persons{}, asked{method: tt.method, target: tt.target})
		if r.StatusCode != tt.want || r.Header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: status %d, Allow %q", tt.method, tt.target, r.StatusCode, r.Header.Get("Allow"))
		}
	}
	large := url.Values{"account": {strings.Repeat("a", 16<<10)}}
	if r := ask(t, &persons{}, asked{method: "POST", target: "/login", form: large}); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a large form: status %d", r.StatusCode)
	}
}

// Another site must not sign a browser in or out.
func TestFormsOfOtherSites(t *testing.T) {
	for path := range formPaths {
		p := &persons{api: accessAPI{tokens: []*grlv1.Token{{Id: "1"}}}}
		r := httptest.NewRequest("POST", "http://localhost:7070"+path, strings.NewReader("account=ada&password=a+long+password"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		web.New(web.Options{Backend: pagetest.Memory{}, People: p}).ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 || p.left || len(p.api.tokens) != 1 {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

func TestWhoIsSignedIn(t *testing.T) {
	for _, tt := range []struct {
		name         string
		person       *access.Person
		want, absent []string
	}{
		{"nobody", nil, nil, []string{`class="side__who"`, "Sign out", "no account yet"}},
		{
			"a session", &access.Person{Name: "ada", Level: access.Editor, By: "session", Session: "1"},
			[]string{"<bdi>ada</bdi>", "editor", "Sign out"},
			[]string{"no account yet"},
		},
		{
			"a token", &access.Person{Name: "ada", Level: access.Viewer, By: "token"},
			[]string{"<bdi>ada</bdi>", "viewer"},
			[]string{"Sign out"},
		},
		{
			"open", &access.Person{Name: "local", Level: access.Admin, By: "open"},
			[]string{"no account yet", `href="/first"`, "local"},
			[]string{"Sign out"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := read(t, ask(t, &persons{}, asked{method: "GET", target: "/fleet", person: tt.person}))
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("no %q on the page", want)
				}
			}
			for _, absent := range tt.absent {
				if strings.Contains(body, absent) {
					t.Errorf("%q is on the page", absent)
				}
			}
		})
	}
}

// Without People there is nothing to sign in to.
func TestNoPeople(t *testing.T) {
	h := web.New(web.Options{Backend: pagetest.Memory{}})
	for path := range formPaths {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost:7070"+path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("GET %s: status %d, want 404", path, w.Code)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost:7070"+path, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: status %d, want 405", path, w.Code)
		}
	}
}
