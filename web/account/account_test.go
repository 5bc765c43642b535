package account_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

// accessAPI is an AccessService that holds its tokens and sessions in memory.
type accessAPI struct {
	grlv1connect.UnimplementedAccessServiceHandler
	accounts []*grlv1.Account
	tokens   []*grlv1.Token
	sessions []*grlv1.Session
}

func (a *accessAPI) ListAccounts(context.Context, *grlv1.ListAccountsRequest) (*grlv1.ListAccountsResponse, error) {
	return &grlv1.ListAccountsResponse{Accounts: a.accounts}, nil
}

func (a *accessAPI) PutAccount(_ context.Context, q *grlv1.PutAccountRequest) (*grlv1.PutAccountResponse, error) {
	if q.GetAccount().GetName() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the account has no name"))
	}
	a.accounts = slices.DeleteFunc(a.accounts, func(o *grlv1.Account) bool { return o.GetName() == q.GetAccount().GetName() })
	a.accounts = append(a.accounts, q.GetAccount())
	return &grlv1.PutAccountResponse{Account: q.GetAccount()}, nil
}

func (a *accessAPI) DeleteAccount(_ context.Context, q *grlv1.DeleteAccountRequest) (*grlv1.DeleteAccountResponse, error) {
	a.accounts = slices.DeleteFunc(a.accounts, func(o *grlv1.Account) bool { return o.GetName() == q.GetName() })
	return &grlv1.DeleteAccountResponse{}, nil
}

func (a *accessAPI) ListTokens(context.Context, *grlv1.ListTokensRequest) (*grlv1.ListTokensResponse, error) {
	return &grlv1.ListTokensResponse{Tokens: a.tokens}, nil
}

func (a *accessAPI) CreateToken(_ context.Context, q *grlv1.CreateTokenRequest) (*grlv1.CreateTokenResponse, error) {
	if q.GetName() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the token has no name"))
	}
	t := &grlv1.Token{
		Id: "made", Name: q.GetName(), Account: "ada", Role: q.GetRole(), Services: q.GetServices(),
		CreatedAtMs: 1_700_000_000_000, ExpiresAtMs: 1_700_000_000_000 + q.GetDurationMs(),
	}
	a.tokens = append(a.tokens, t)
	return &grlv1.CreateTokenResponse{Token: t, Secret: "grl_made_secret"}, nil
}

func (a *accessAPI) RevokeToken(_ context.Context, q *grlv1.RevokeTokenRequest) (*grlv1.RevokeTokenResponse, error) {
	before := len(a.tokens)
	a.tokens = slices.DeleteFunc(a.tokens, func(t *grlv1.Token) bool { return t.GetId() == q.GetId() })
	if len(a.tokens) == before {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such token"))
	}
	return &grlv1.RevokeTokenResponse{}, nil
}

func (a *accessAPI) ListSessions(context.Context, *grlv1.ListSessionsRequest) (*grlv1.ListSessionsResponse, error) {
	return &grlv1.ListSessionsResponse{Sessions: slices.Clone(a.sessions)}, nil
}

func (a *accessAPI) EndSession(_ context.Context, q *grlv1.EndSessionRequest) (*grlv1.EndSessionResponse, error) {
	a.sessions = slices.DeleteFunc(a.sessions, func(n *grlv1.Session) bool { return n.GetId() == q.GetId() })
	return &grlv1.EndSessionResponse{}, nil
}

var adaSignedIn = &access.Person{Name: "ada", Level: access.Editor, By: "session", Session: "here"}

var fromAddress = regexp.MustCompile(`192\.0\.2\.\d`)

func TestAccountPage(t *testing.T) {
	p := &persons{api: accessAPI{
		tokens: []*grlv1.Token{
			{Id: "1", Name: `<script>ci`, Account: "ada", Role: grlv1.AccountRole_ACCOUNT_ROLE_EDITOR, Services: []string{"pay", "search"}, CreatedAtMs: 1_700_000_000_000, ExpiresAtMs: 1_700_086_400_000},
		},
		sessions: []*grlv1.Session{
			{Id: "there", Account: "ada", From: "192.0.2.2", CreatedAtMs: 1_700_000_000_000, UsedAtMs: 1_700_000_060_000},
			{Id: "here", Account: "ada", From: "192.0.2.1", CreatedAtMs: 1_700_000_000_000, UsedAtMs: 1_700_000_000_000},
			{Id: "lately", Account: "ada", From: "192.0.2.3", CreatedAtMs: 1_700_000_000_000, UsedAtMs: 1_700_000_120_000},
		},
	}}
	r := ask(t, p, asked{method: "GET", target: "/access", person: adaSignedIn})
	body := read(t, r)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("status %d", r.StatusCode)
	}
	for _, want := range []string{
		"&lt;script&gt;ci", "pay search", "2023-11-14 22:13:20 UTC", "2023-11-15 22:13:20 UTC", "never", "192.0.2.2",
		`<option value="viewer"`, `<option value="editor"`, `value="there"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	for _, absent := range []string{"<script>ci", `<option value="admin"`} {
		if strings.Contains(body, absent) {
			t.Errorf("%q is on the page", absent)
		}
	}
	if strings.Count(body, "this one") != 1 {
		t.Error("the session of the page is not marked, or others are")
	}
	if got, want := fromAddress.FindAllString(body, -1), []string{"192.0.2.1", "192.0.2.3", "192.0.2.2"}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("sessions from %q, want that of the page first, then who was here last: %q", got, want)
	}
}

func TestMakeTokenOnThePage(t *testing.T) {
	p := &persons{}
	form := url.Values{"name": {"ci"}, "role": {"editor"}, "days": {"7"}, "services": {" pay  search "}}
	r := ask(t, p, asked{method: "POST", target: "/account/tokens", form: form, person: adaSignedIn})
	if body := read(t, r); r.StatusCode != http.StatusOK || strings.Count(body, "grl_made_secret") != 1 || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %s:\n%s", r.StatusCode, r.Header.Get("Cache-Control"), body)
	}
	made := p.api.tokens[0]
	if made.GetRole() != grlv1.AccountRole_ACCOUNT_ROLE_EDITOR || !slices.Equal(made.GetServices(), []string{"pay", "search"}) || made.GetExpiresAtMs()-made.GetCreatedAtMs() != 7*86_400_000 {
		t.Errorf("made %v", made)
	}
	if body := read(t, ask(t, p, asked{method: "GET", target: "/access", person: adaSignedIn})); strings.Contains(body, "grl_made_secret") {
		t.Error("the secret is shown again")
	}
	for _, bad := range []url.Values{
		{"name": {"ci"}, "role": {"viewer"}, "days": {"0"}},
		{"name": {"ci"}, "role": {"viewer"}, "days": {"9999999"}},
		{"name": {"ci"}, "role": {"viewer"}, "days": {"x"}},
		{"name": {""}, "role": {"viewer"}, "days": {"1"}},
	} {
		r := ask(t, p, asked{method: "POST", target: "/account/tokens", form: bad, person: adaSignedIn})
		if body := read(t, r); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%v: status %d", bad, r.StatusCode)
		}
	}
	if len(p.api.tokens) != 1 {
		t.Errorf("%d tokens, want 1", len(p.api.tokens))
	}
}

func TestRevokeAndEndOnThePage(t *testing.T) {
	p := &persons{api: accessAPI{tokens: []*grlv1.Token{{Id: "1"}}, sessions: []*grlv1.Session{{Id: "there"}}}}
	for target, id := range map[string]string{"/account/tokens/revoke": "1", "/account/sessions/end": "there"} {
		r := ask(t, p, asked{method: "POST", target: target, form: url.Values{"id": {id}}, person: adaSignedIn})
		if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), "/access?") {
			t.Errorf("%s: status %d to %q", target, r.StatusCode, r.Header.Get("Location"))
			continue
		}
		if body := read(t, ask(t, p, asked{method: "GET", target: r.Header.Get("Location"), person: adaSignedIn})); !strings.Contains(body, "notice--good") {
			t.Errorf("%s: the page does not say that it is done:\n%s", target, body)
		}
	}
	if len(p.api.tokens)+len(p.api.sessions) != 0 {
		t.Errorf("left: %v, %v", p.api.tokens, p.api.sessions)
	}
	r := ask(t, p, asked{method: "POST", target: "/account/tokens/revoke", form: url.Values{"id": {"1"}}, person: adaSignedIn})
	if body := read(t, r); r.StatusCode != http.StatusNotFound || !strings.Contains(body, "there is no such token") {
		t.Errorf("status %d:\n%s", r.StatusCode, body)
	}
}

var root = &access.Person{Name: "root", Level: access.Admin, By: "session", Session: "here"}

// An admin makes accounts, changes and deletes them; a viewer does not see how.
func TestAccounts(t *testing.T) {
	p := &persons{api: accessAPI{
		accounts: []*grlv1.Account{{Name: "root", Role: grlv1.AccountRole_ACCOUNT_ROLE_ADMIN}, {Name: "<b>grace", Role: grlv1.AccountRole_ACCOUNT_ROLE_VIEWER, Oidc: true}},
		sessions: []*grlv1.Session{{Id: "1", Account: "root", UsedAtMs: 1_700_000_000_000}, {Id: "2", Account: "<b>grace"}, {Id: "3", Account: "<b>grace"}},
	}}
	page := func(target string, who *access.Person) string {
		t.Helper()
		return read(t, ask(t, p, asked{method: "GET", target: target, person: who}))
	}
	text := page("/access", root)
	for _, want := range []string{"New account", "everything", "&lt;b&gt;grace", "signs in through the provider", `aria-label="End sessions of &lt;b&gt;grace"`, "2023-11-14 22:13:20 UTC"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if text := page("/access", adaSignedIn); strings.Contains(text, "New account") || strings.Contains(text, "/access/account") {
		t.Error("an editor is offered to change accounts")
	}
	for _, target := range []string{"/access/account", "/access/account?name=root"} {
		if r := ask(t, p, asked{method: "GET", target: target, person: adaSignedIn}); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s as an editor: status %d, want 403", target, r.StatusCode)
		}
	}
	if text := page("/access/account?name=root", root); !strings.Contains(text, "The last admin") || strings.Contains(text, "/access/account/delete") {
		t.Error("the last admin can be demoted or deleted")
	}
	if text := page("/access/account?name=%3Cb%3Egrace", root); strings.Contains(text, `name="password"`) || !strings.Contains(text, "/access/account/delete") {
		t.Error("who signs in through the provider gets a password, or cannot be deleted")
	}

	form := url.Values{"new": {"yes"}, "name": {"alan"}, "role": {"editor"}, "services": {"pay\n search"}, "owners": {"team pay\r\n\r\nteam-x"}, "password": {"a long password"}}
	r := ask(t, p, asked{method: "POST", target: "/access/account", form: form, person: root})
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/access/account?name=alan&saved=yes" {
		t.Fatalf("status %d to %q", r.StatusCode, r.Header.Get("Location"))
	}
	made := p.api.accounts[len(p.api.accounts)-1]
	if made.GetRole() != grlv1.AccountRole_ACCOUNT_ROLE_EDITOR || !slices.Equal(made.GetServices(), []string{"pay", "search"}) || !slices.Equal(made.GetOwners(), []string{"team pay", "team-x"}) {
		t.Errorf("made %v", made)
	}
	if text := page(r.Header.Get("Location"), root); !strings.Contains(text, "Saved") || !strings.Contains(text, "team pay\nteam-x") || strings.Contains(text, "a long password") {
		t.Errorf("after saving:\n%s", text)
	}
	if text := page("/access", root); !strings.Contains(text, "pay, search, all of team pay, all of team-x") {
		t.Error("the page does not say what the account may change")
	}

	form.Set("name", "")
	r = ask(t, p, asked{method: "POST", target: "/access/account", form: form, person: root})
	if text := read(t, r); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "team pay") || strings.Contains(text, "a long password") {
		t.Errorf("a refused form: status %d, and what was typed:\n%s", r.StatusCode, text)
	}

	gone := url.Values{"name": {"alan"}}
	if r := ask(t, p, asked{method: "POST", target: "/access/account/delete", form: gone, person: root}); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("deleted without a tick: status %d", r.StatusCode)
	}
	gone.Set("sure", "yes")
	r = ask(t, p, asked{method: "POST", target: "/access/account/delete", form: gone, person: root})
	if r.StatusCode != http.StatusSeeOther || len(p.api.accounts) != 2 {
		t.Fatalf("status %d, %d accounts", r.StatusCode, len(p.api.accounts))
	}
	if text := page(r.Header.Get("Location"), root); !strings.Contains(text, "The account is deleted") {
		t.Error("the page does not say that the account is deleted")
	}

	r = ask(t, p, asked{method: "POST", target: "/account/sessions/end", form: url.Values{"account": {"<b>grace"}}, person: root})
	if r.StatusCode != http.StatusSeeOther || len(p.api.sessions) != 1 {
		t.Errorf("ending all sessions: status %d, %d left, want 1", r.StatusCode, len(p.api.sessions))
	}
}
