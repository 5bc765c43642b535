package people

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/web"
	"grl/web/pagetest"
)

// browser asks the dashboard as a person's browser does: with cookies, without
// JavaScript.
type browser struct {
	*http.Client
	base string
}

// dashboard serves pages behind the gate of a controller.
func dashboard(t *testing.T, r *rig, withTLS bool) *browser {
	t.Helper()
	gate := access.NewGate(access.Options{Role: access.Controller, People: r.People, Registry: prometheus.NewRegistry()})
	h := gate.Handler(web.New(web.Options{Backend: pagetest.Memory{}, People: r.People}))
	server := httptest.NewUnstartedServer(h)
	if withTLS {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	client.Jar = jar
	return &browser{client, server.URL}
}

// page returns what a browser shows in the end, its status and its path.
func (b *browser) page(t *testing.T, r *http.Response, err error) (body string, status int, path string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), r.StatusCode, r.Request.URL.RequestURI()
}

func (b *browser) open(t *testing.T, path string) (body string, status int, at string) {
	t.Helper()
	r, err := b.Get(b.base + path)
	return b.page(t, r, err)
}

func (b *browser) submit(t *testing.T, path string, form url.Values) (body string, status int, at string) {
	t.Helper()
	r, err := b.PostForm(b.base+path, form)
	return b.page(t, r, err)
}

// TestInTheBrowser goes from the link of the first start to the account page and
// out again, with and without TLS.
func TestInTheBrowser(t *testing.T) {
	for name, withTLS := range map[string]bool{"plain text": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			b := dashboard(t, r, withTLS)
			link, err := r.Bootstrap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, _, at := b.open(t, "/fleet"); at != "/login?next=%2Ffleet" {
				t.Errorf("a page before anything leads to %s", at)
			}
			if _, status, _ := b.open(t, link); status != http.StatusOK {
				t.Fatalf("the link: status %d", status)
			}
			token := strings.TrimPrefix(link, "/first?token=")
			body, status, at := b.submit(t, "/first", url.Values{
				"token": {token}, "account": {"root"}, "password": {rootPassword}, "again": {rootPassword},
			})
			if status != http.StatusOK || at != "/" || !strings.Contains(body, "<bdi>root</bdi>") {
				t.Fatalf("the first account: status %d at %s", status, at)
			}
			if _, status, _ := b.open(t, link); status != http.StatusForbidden {
				t.Errorf("the link once more: status %d", status)
			}

			body, status, _ = b.submit(t, "/account/tokens", url.Values{"name": {"ci"}, "role": {"viewer"}, "days": {"7"}})
			secret := regexp.MustCompile(`grl_[0-9a-f]+_[0-9a-f]+`).FindString(body)
			if p, err := r.Person(t.Context(), secret, ""); status != http.StatusOK || err != nil || p.Level != access.Viewer {
				t.Errorf("a token of the page: status %d, %+v, %v", status, p, err)
			}

			if _, _, at := b.submit(t, "/logout", nil); at != "/login" {
				t.Errorf("signing out leads to %s", at)
			}
			if _, _, at := b.open(t, "/account"); at != "/login?next=%2Faccount" {
				t.Errorf("the account page, signed out, leads to %s", at)
			}
			body, status, _ = b.submit(t, "/login", url.Values{"account": {"root"}, "password": {"wrong"}})
			if status != http.StatusForbidden || !strings.Contains(body, "Account or password is wrong.") {
				t.Errorf("a wrong password: status %d", status)
			}
			if _, status, at := b.submit(t, "/login", url.Values{"account": {"root"}, "password": {rootPassword}, "next": {"/account"}}); status != http.StatusOK || at != "/access" {
				t.Errorf("signing in: status %d at %s", status, at)
			}

			form := url.Values{"new": {"yes"}, "name": {"ada"}, "role": {"editor"}, "services": {"pay"}, "password": {rootPassword}}
			body, status, at = b.submit(t, "/access/account", form)
			if status != http.StatusOK || at != "/access/account?name=ada&saved=yes" || !strings.Contains(body, "Saved") {
				t.Errorf("making an account: status %d at %s", status, at)
			}
			form = url.Values{"name": {"root"}, "role": {"viewer"}}
			if body, status, _ = b.submit(t, "/access/account", form); status < 400 || !strings.Contains(body, `role="alert"`) {
				t.Errorf("taking the last admin's role: status %d", status)
			}
			body, status, at = b.submit(t, "/access/account/delete", url.Values{"name": {"ada"}, "sure": {"yes"}})
			if status != http.StatusOK || at != "/access?deleted=ada" || !strings.Contains(body, "The account is deleted") {
				t.Errorf("deleting an account: status %d at %s", status, at)
			}
		})
	}
}

// The provider sends the browser back with the cookie that it left with.
func TestProviderInTheBrowser(t *testing.T) {
	p := newIDP(t)
	settings := p.settings(t)
	r := newRig(t, settings)
	b := dashboard(t, r, true)
	b.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(next.URL.String(), b.base) {
			return http.ErrUseLastResponse // to the provider
		}
		return nil
	}
	start, err := b.Get(b.base + "/oidc/start?next=/fleet")
	if err != nil {
		t.Fatal(err)
	}
	_ = start.Body.Close()
	answer := p.authorize(t, start.Header.Get("Location"), ada("sre"))
	body, status, at := b.open(t, "/oidc/callback?"+answer.Encode())
	if status != http.StatusOK || at != "/fleet" || !strings.Contains(body, "oidc:ada@example.com") {
		t.Errorf("back from the provider: status %d at %s; log:\n%s", status, at, r.log)
	}
	_, status, _ = b.open(t, "/oidc/callback?"+answer.Encode())
	if status != http.StatusForbidden {
		t.Errorf("the same answer once more: status %d", status)
	}
}
