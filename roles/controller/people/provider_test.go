package people

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	"grl/store/ledger"
)

// ada is a person at the provider.
func ada(groups ...string) map[string]any {
	return map[string]any{"sub": "248289761001", "email": "Ada@Example.com", "email_verified": true, "groups": groups}
}

// signIn goes the whole way through the provider.
func (r *rig) signIn(t *testing.T, p *idp, person map[string]any) (bearer, next string, err error) {
	t.Helper()
	from := calling(t, "192.0.2.1:1000", nil)
	address, cookie, err := r.StartProvider(from, "/buckets?q=pay")
	if err != nil {
		t.Fatal(err)
	}
	return r.FinishProvider(from, cookie, p.authorize(t, address, person))
}

// admitted signs in an admin, who must come in.
func (r *rig) admitted(t *testing.T, p *idp, person map[string]any) (string, access.Person) {
	t.Helper()
	bearer, _, err := r.signIn(t, p, person)
	if err != nil {
		t.Fatalf("sign in: %v; log:\n%s", err, r.log)
	}
	who, err := r.Person(t.Context(), bearer, "")
	if err != nil {
		t.Fatal(err)
	}
	return bearer, who
}

func TestSignInThroughTheProvider(t *testing.T) {
	for name, sign := range map[string]func(*idp) func(map[string]any) string{
		"RS256": func(p *idp) func(map[string]any) string { return p.rs256 },
		"ES256": func(p *idp) func(map[string]any) string { return p.es256 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			p.sign = sign(p)
			r := newRig(t, p.settings(t))
			if r.Open(t.Context()) {
				t.Error("open with a provider")
			}
			bearer, next, err := r.signIn(t, p, ada("staff", "sre"))
			if err != nil || next != "/buckets?q=pay" {
				t.Fatalf("next %q, %v; log:\n%s", next, err, r.log)
			}
			who, err := r.Person(t.Context(), bearer, "")
			if err != nil || who.Name != "oidc:ada@example.com" || who.Level != access.Admin {
				t.Errorf("person %+v, %v", who, err)
			}
			if puts := r.entries(t, "account.put"); len(puts) != 1 || puts[0].Actor != who.Name || puts[0].Reason != "groups at the provider" {
				t.Errorf("audit %+v", puts)
			}
		})
	}
}

func TestRolesFromTheProvider(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	r.put(t)
	for _, tt := range []struct {
		groups []string
		level  access.Level
		edits  bool // services of team-pay
	}{
		{[]string{"developers", "team-pay", "bad\nname"}, access.Editor, true},
		{[]string{"staff", "team-pay"}, access.Viewer, false},
		{[]string{"sre", "staff"}, access.Admin, true},
		{[]string{"developers"}, access.Editor, false},
	} {
		if _, who := r.admitted(t, p, ada(tt.groups...)); who.Level != tt.level || who.MayEdit("pay", "team-pay") != tt.edits {
			t.Errorf("groups %q: %+v, want %v", tt.groups, who, tt.level)
		}
	}
	one := ada()
	one["groups"] = "staff"
	if _, who := r.admitted(t, p, one); who.Level != access.Viewer {
		t.Errorf("a single group that is no list: %+v", who)
	}
	for _, groups := range [][]string{nil, {"visitors"}, {"SRE"}, {"sre "}} {
		_, _, err := r.signIn(t, p, ada(groups...))
		wantCode(t, "groups "+strings.Join(groups, ","), err, connect.CodePermissionDenied)
	}
}

// The services that an admin gave to somebody from the provider stay with them.
func TestServicesOfAPersonFromTheProvider(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	r.put(t)
	_, who := r.admitted(t, p, ada("developers"))
	_, root := r.login(t, "root", rootPassword)
	account := ledger.Account{Name: who.Name, Role: "editor", Services: []string{"pay"}}
	if _, err := r.PutAccount(root, account, ""); err != nil {
		t.Fatal(err)
	}
	_, err := r.PutAccount(root, account, adaPassword)
	wantCode(t, "a password for somebody from the provider", err, connect.CodeFailedPrecondition)
	account.Role, account.Services = "admin", nil
	_, err = r.PutAccount(root, account, "")
	wantCode(t, "a role for somebody from the provider", err, connect.CodeFailedPrecondition)
	if _, who := r.admitted(t, p, ada("developers")); !who.MayEdit("pay", "") {
		t.Errorf("person %+v, want an editor of pay", who)
	}
	_, _, err = r.Login(calling(t, "192.0.2.1", nil), who.Name, "")
	wantCode(t, "login without a password", err, connect.CodeUnauthenticated)
}

// There is an admin, whatever the provider says.
func TestTheProviderLeavesAnAdmin(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	_, _, err := r.signIn(t, p, ada("staff"))
	wantCode(t, "a viewer as the first one", err, connect.CodeFailedPrecondition)
	r.wantNobody(t)
	r.admitted(t, p, ada("sre"))
	_, _, err = r.signIn(t, p, ada("staff"))
	wantCode(t, "the last admin as a viewer", err, connect.CodeFailedPrecondition)
	r.admitted(t, p, map[string]any{"sub": "2", "groups": []string{"sre"}})
	if _, who := r.admitted(t, p, ada("staff")); who.Level != access.Viewer {
		t.Errorf("once there is another admin: %+v", who)
	}
}

// Names that a provider gives cannot be those of accounts with a password.
func TestNamesFromTheProvider(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	for _, tt := range []struct {
		name   string
		person map[string]any
		want   string
	}{
		{"a verified address", map[string]any{"sub": "1", "email": "root@example.com", "email_verified": true}, "oidc:root@example.com"},
		{"one that is not verified", map[string]any{"sub": "2", "email": "root@example.com", "email_verified": false}, "oidc-sub:2"},
		{"no address", map[string]any{"sub": "auth0|3"}, "oidc-sub:auth0|3"},
		{"no address, but the name of an account", map[string]any{"sub": "4", "email": "root", "email_verified": true}, "oidc-sub:4"},
		{"a subject that is no name", map[string]any{"sub": "../5"}, "oidc-sub:" + hex.EncodeToString(hashOf("../5"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.person["groups"] = []string{"sre"}
			_, who := r.admitted(t, p, tt.person)
			if who.Name != tt.want {
				t.Errorf("name %q, want %q", who.Name, tt.want)
			}
		})
	}
}

// What a false provider, a false token or a false browser tries. None comes in,
// none makes an account.
func TestAttacksOnTheProvidersWay(t *testing.T) {
	otherKey := keyOfOthers()
	set := func(name string, value any) func(*idp) {
		return func(p *idp) { p.alter = func(c map[string]any) { c[name] = value } }
	}
	tokens := map[string]struct {
		why string // in the log
		do  func(*idp)
	}{
		"issuer of somebody else":      {"issued by a different provider", set("iss", "https://evil.example")},
		"issuer with a slash":          {"issued by a different provider", func(p *idp) { p.alter = func(c map[string]any) { c["iss"] = p.URL + "/" } }},
		"no issuer":                    {"issued by a different provider", func(p *idp) { p.alter = func(c map[string]any) { delete(c, "iss") } }},
		"audience of another client":   {"expected audience", set("aud", "another")},
		"no audience":                  {"expected audience", func(p *idp) { p.alter = func(c map[string]any) { delete(c, "aud") } }},
		"two audiences, no party":      {"made for another party", set("aud", []string{clientID, "another"})},
		"made for another party":       {"made for another party", set("azp", "another")},
		"nonce of another login":       {"the nonce is not", set("nonce", strings.Repeat("0", 64))},
		"no nonce":                     {"the nonce is not", func(p *idp) { p.alter = func(c map[string]any) { delete(c, "nonce") } }},
		"expired":                      {"token is expired", set("exp", time.Now().Add(-time.Second).Unix())},
		"no expiry":                    {"token is expired", func(p *idp) { p.alter = func(c map[string]any) { delete(c, "exp") } }},
		"not valid yet":                {"before the nbf", set("nbf", time.Now().Add(time.Hour).Unix())},
		"no subject":                   {"no subject", set("sub", "")},
		"groups that are no names":     {"cannot unmarshal object", set("groups", map[string]any{"sre": true})},
		"signed by nobody: alg none":   {"unexpected signature algorithm", func(p *idp) { p.sign = unsigned("none") }},
		"signed by nobody: alg None":   {"unexpected signature algorithm", func(p *idp) { p.sign = unsigned("None") }},
		"signed by nobody: alg RS256":  {"failed to verify", func(p *idp) { p.sign = unsigned("RS256") }},
		"another key of the same name": {"failed to verify", func(p *idp) { p.sign = func(c map[string]any) string { return signRSA(otherKey, "rsa", c) } }},
		"another key":                  {"failed to verify", func(p *idp) { p.sign = func(c map[string]any) string { return signRSA(otherKey, "other", c) } }},
		"key confusion":                {"unexpected signature algorithm", func(p *idp) { p.sign = p.confused }},
		"symmetric":                    {"unexpected signature algorithm", func(p *idp) { p.sign = hs256 }},
		"the key for another algorithm": {"failed to verify", func(p *idp) {
			p.sign = func(c map[string]any) string { return signRSA(p.rsa, "ec", c) }
		}},
		"its own key in the header": {"failed to verify", func(p *idp) { p.sign = ownKey(otherKey) }},
		"claims changed afterwards": {"failed to verify", func(p *idp) {
			p.sign = func(c map[string]any) string {
				parts := strings.Split(p.rs256(c), ".")
				changed := maps.Clone(c)
				changed["sub"] = "root"
				parts[1] = strings.Split(jwt(nil, changed), ".")[1]
				return strings.Join(parts, ".")
			}
		}},
		"no token":  {"malformed jwt", func(p *idp) { p.sign = func(map[string]any) string { return "" } }},
		"no JWT":    {"malformed jwt", func(p *idp) { p.sign = func(map[string]any) string { return "a.b" } }},
		"very long": {"exchange code", func(p *idp) { p.sign = func(map[string]any) string { return strings.Repeat("a", 2<<20) } }},
		"discovery of another issuer": {"did not match the issuer", func(p *idp) {
			p.describe = func(d map[string]any) { d["issuer"] = "https://evil.example" }
		}},
	}
	for name, attack := range tokens {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			r := newRig(t, p.settings(t))
			attack.do(p)
			from := calling(t, "192.0.2.1:1000", nil)
			address, cookie, err := r.StartProvider(from, "/")
			if err == nil {
				_, _, err = r.FinishProvider(from, cookie, p.authorize(t, address, ada("sre")))
			}
			wantCode(t, name, err, connect.CodeUnauthenticated)
			r.wantNobody(t)
			if !strings.Contains(r.log.String(), attack.why) {
				t.Errorf("refused for another reason than %q:\n%s", attack.why, r.log)
			}
		})
	}
}

// wantNobody checks that there is neither an account nor a session.
func (r *rig) wantNobody(t *testing.T) {
	t.Helper()
	accounts, errA := r.ledger.Accounts(t.Context())
	sessions, errS := r.ledger.Sessions(t.Context())
	if errA != nil || errS != nil || len(accounts)+len(sessions) != 0 {
		t.Errorf("accounts %+v, %v; sessions %+v, %v; want none", accounts, errA, sessions, errS)
	}
}

func unsigned(alg string) func(map[string]any) string {
	return func(c map[string]any) string { return jwt(map[string]any{"alg": alg, "kid": "rsa"}, c) + "." }
}

// ownKey signs by a key that the token itself brings along.
func ownKey(key *rsa.PrivateKey) func(map[string]any) string {
	return func(c map[string]any) string {
		parts := strings.Split(signRSA(key, "own", c), ".")
		header, err := json.Marshal(map[string]any{
			"alg": "RS256", "kid": "own",
			"jwk": map[string]any{"kty": "RSA", "n": encode(key.N.Bytes()), "e": "AQAB"},
		})
		if err != nil {
			panic(err)
		}
		parts[0] = base64.RawURLEncoding.EncodeToString(header)
		return strings.Join(parts, ".")
	}
}

// What a browser that was led astray brings back.
func TestAnswersThatBelongToNoLogin(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	from := calling(t, "192.0.2.1:1000", nil)
	begin := func() (cookie string, answer url.Values) {
		t.Helper()
		address, cookie, err := r.StartProvider(from, "/")
		if err != nil {
			t.Fatal(err)
		}
		return cookie, p.authorize(t, address, ada("sre"))
	}
	with := func(answer url.Values, name, value string) url.Values {
		answer.Set(name, value)
		return answer
	}
	victim, _ := begin()
	for name, attempt := range map[string]func() (string, url.Values){
		"no cookie":      func() (string, url.Values) { _, a := begin(); return "", a },
		"a made-up one":  func() (string, url.Values) { _, a := begin(); return random(secretBytes), a },
		"another state":  func() (string, url.Values) { c, a := begin(); return c, with(a, "state", random(secretBytes)) },
		"no state":       func() (string, url.Values) { c, a := begin(); return c, with(a, "state", "") },
		"no code":        func() (string, url.Values) { c, a := begin(); return c, with(a, "code", "") },
		"a made-up code": func() (string, url.Values) { c, a := begin(); return c, with(a, "code", rand.Text()) },
		"a long code": func() (string, url.Values) {
			c, a := begin()
			return c, with(a, "code", strings.Repeat("a", maxCode+1))
		},
		"an error":        func() (string, url.Values) { c, a := begin(); return c, with(a, "error", "access_denied") },
		"another issuer":  func() (string, url.Values) { c, a := begin(); return c, with(a, "iss", "https://evil.example") },
		"a login of mine": func() (string, url.Values) { _, a := begin(); return victim, a },
		"a code of mine: its verifier is mine": func() (string, url.Values) {
			_, mine := begin()
			c, theirs := begin()
			return c, with(theirs, "code", mine.Get("code"))
		},
	} {
		cookie, answer := attempt()
		bearer, _, err := r.FinishProvider(from, cookie, answer)
		wantCode(t, name, err, connect.CodeUnauthenticated)
		if bearer != "" {
			t.Errorf("%s: a session", name)
		}
	}
	r.wantNobody(t)

	cookie, answer := begin()
	if _, _, err := r.FinishProvider(from, cookie, answer); err != nil {
		t.Fatalf("a good one: %v; log:\n%s", err, r.log)
	}
	_, _, err := r.FinishProvider(from, cookie, answer)
	wantCode(t, "the same once more", err, connect.CodeUnauthenticated)
	cookie, again := begin()
	_, _, err = r.FinishProvider(from, cookie, with(again, "code", answer.Get("code")))
	wantCode(t, "its code in another login", err, connect.CodeUnauthenticated)
}

func TestFlowsAreBoundedAndEnd(t *testing.T) {
	var f flows
	now := time.Now()
	for i := range MostFlows + 10 {
		f.add(string(rune('a'+i%26))+random(4), flow{until: now.Add(FlowLife)}, now)
	}
	if len(f.byID) != MostFlows || len(f.order) != MostFlows {
		t.Errorf("%d flows, %d in order; want %d", len(f.byID), len(f.order), MostFlows)
	}
	f.add("late", flow{until: now.Add(FlowLife)}, now)
	if _, ok := f.take("late", now.Add(FlowLife)); ok {
		t.Error("taken after its time")
	}
	f.add("next", flow{until: now.Add(2 * FlowLife)}, now.Add(FlowLife))
	if len(f.byID) != 1 {
		t.Errorf("%d flows; those that ended stay", len(f.byID))
	}
}

// A provider that is away keeps nobody else out, and is asked again.
func TestProviderThatIsAway(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	r.put(t)
	p.describe = func(d map[string]any) { clear(d) }
	from := calling(t, "192.0.2.1:1000", nil)
	_, _, err := r.StartProvider(from, "/")
	wantCode(t, "a provider that describes nothing", err, connect.CodeUnauthenticated)
	r.login(t, "root", rootPassword)
	p.describe = nil
	if _, _, err := r.StartProvider(from, "/"); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}

// A description must not send the secret elsewhere in plain text, nor lead
// elsewhere by redirection.
func TestDescriptionsThatAreRefused(t *testing.T) {
	for name, describe := range map[string]func(map[string]any){
		"a token endpoint in plain text": func(d map[string]any) { d["token_endpoint"] = "http://login.example.com/token" },
		"keys in plain text":             func(d map[string]any) { d["jwks_uri"] = "http://login.example.com/keys" },
		"a page that is a script":        func(d map[string]any) { d["authorization_endpoint"] = "javascript:alert(1)" },
		"no page":                        func(d map[string]any) { delete(d, "authorization_endpoint") },
	} {
		p := newIDP(t)
		p.describe = describe
		r := newRig(t, p.settings(t))
		_, _, err := r.StartProvider(calling(t, "192.0.2.1", nil), "/")
		wantCode(t, name, err, connect.CodeUnauthenticated)
	}
	elsewhere := newIDP(t)
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/.well-known/openid-configuration", http.StatusFound))
	defer redirecting.Close()
	settings := elsewhere.settings(t)
	settings.Issuer = redirecting.URL
	_, _, err := newRig(t, settings).StartProvider(calling(t, "192.0.2.1", nil), "/")
	wantCode(t, "a redirection", err, connect.CodeUnauthenticated)
}

// Accounts of a provider that is no longer set up do not come in.
func TestWithoutTheProvider(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	bearer, _ := r.admitted(t, p, ada("sre"))
	without, err := New(Options{Ledger: r.ledger})
	if err != nil {
		t.Fatal(err)
	}
	r.People = without
	r.wantGone(t, "a session from the provider", bearer)
}

func TestValidateOIDC(t *testing.T) {
	p := newIDP(t)
	if err := p.settings(t).Validate(); err != nil {
		t.Errorf("good settings: %v", err)
	}
	empty := p.settings(t).SecretFile + ".empty"
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*OIDC){
		`controller.oidc_issuer: "" is no URL`:                                 func(o *OIDC) { o.Issuer = "" },
		`controller.oidc_issuer: "http://login.example.com" must be https`:     func(o *OIDC) { o.Issuer = "http://login.example.com" },
		`controller.oidc_issuer: "https://u:p@login.example.com" is no URL`:    func(o *OIDC) { o.Issuer = "https://u:p@login.example.com" },
		`controller.oidc_client_id: missing`:                                   func(o *OIDC) { o.ClientID = "" },
		`controller.public_url: "http://grl.example.com" must be https`:        func(o *OIDC) { o.PublicURL = "http://grl.example.com" },
		`controller.public_url: "" is no URL`:                                  func(o *OIDC) { o.PublicURL = "" },
		`controller.oidc_admins: empty`:                                        func(o *OIDC) { o.Admins = nil },
		`controller.oidc_viewers: "" is no value`:                              func(o *OIDC) { o.Viewers = []string{""} },
		`controller.oidc_client_secret_file: open /nowhere`:                    func(o *OIDC) { o.SecretFile = "/nowhere" },
		`controller.oidc_client_secret_file: ` + empty + ` is empty or larger`: func(o *OIDC) { o.SecretFile = empty },
	} {
		o := p.settings(t)
		change(o)
		if _, err := New(Options{OIDC: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
