package people

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	clientID     = "grl"
	clientSecret = "the-secret-of-the-client-0123456789"
)

// idp is a small OpenID provider: discovery, keys, and a token endpoint that
// checks the client's secret, the code and PKCE, as a real one does. Where it
// lies is what a test sets.
type idp struct {
	*httptest.Server
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey

	mu    sync.Mutex
	codes map[string]grant

	// sign makes the ID token of claims; nil: RS256 by the right key.
	sign func(claims map[string]any) string
	// alter changes the claims of a good token; nil: not.
	alter func(claims map[string]any)
	// describe changes the discovery document; nil: not.
	describe func(document map[string]any)
}

// grant is what a code stands for.
type grant struct {
	challenge, nonce, redirect string
	claims                     map[string]any
}

// keyOfIDP and keyOfOthers are made once, since that takes long.
var (
	keyOfIDP    = sync.OnceValue(makeRSA)
	keyOfOthers = sync.OnceValue(makeRSA)
)

func makeRSA() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	p := &idp{codes: make(map[string]grant), rsa: keyOfIDP()}
	var err error
	if p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.serveDiscovery)
	mux.HandleFunc("GET /keys", p.serveKeys)
	mux.HandleFunc("POST /token", p.serveToken)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// settings are those of a grl that trusts p.
func (p *idp) settings(t *testing.T) *OIDC {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &OIDC{
		Issuer: p.URL, ClientID: clientID, SecretFile: file, PublicURL: "https://grl.example.com/",
		Admins: []string{"sre"}, Editors: []string{"developers"}, Viewers: []string{"staff"},
	}
}

func (p *idp) serveDiscovery(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"},
	}
	if p.describe != nil {
		p.describe(document)
	}
	answerJSON(w, document)
}

func (p *idp) serveKeys(w http.ResponseWriter, _ *http.Request) {
	point, err := p.ec.PublicKey.Bytes()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, map[string]any{"keys": []map[string]any{
		{"kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig", "n": encode(p.rsa.N.Bytes()), "e": "AQAB"},
		{"kty": "EC", "kid": "ec", "alg": "ES256", "use": "sig", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])},
	}})
}

// authorize is what happens when a person signs in at p: it returns the answer
// that the browser carries back.
func (p *idp) authorize(t *testing.T, address string, person map[string]any) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"client_id": clientID, "response_type": "code", "redirect_uri": "https://grl.example.com/oidc/callback", "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, q.Get(name), want)
		}
	}
	if q.Get("code_challenge") == "" || len(q.Get("state")) < 32 || len(q.Get("nonce")) < 32 {
		t.Errorf("no challenge, state or nonce in %s", address)
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = grant{challenge: q.Get("code_challenge"), nonce: q.Get("nonce"), redirect: q.Get("redirect_uri"), claims: person}
	return url.Values{"code": {code}, "state": {q.Get("state")}}
}

func (p *idp) serveToken(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	p.mu.Lock()
	g, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != clientID || secret != clientSecret:
		refuseToken(w, http.StatusUnauthorized, "invalid_client")
		return
	case !ok, g.challenge != encode(sum[:]), g.redirect != r.PostFormValue("redirect_uri"):
		refuseToken(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": clientID, "nonce": g.nonce,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	for name, value := range g.claims {
		claims[name] = value
	}
	if p.alter != nil {
		p.alter(claims)
	}
	sign := p.sign
	if sign == nil {
		sign = p.rs256
	}
	answerJSON(w, map[string]any{"access_token": "an-access-token-of-the-provider", "token_type": "Bearer", "id_token": sign(claims)})
}

// refuseToken quotes a secret, as careless providers do.
func refuseToken(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error": %q, "error_description": "for %s"}`, code, clientSecret)
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwt returns the signed part of a token.
func jwt(header, claims map[string]any) string {
	h, errH := json.Marshal(header)
	c, errC := json.Marshal(claims)
	if errH != nil || errC != nil {
		panic("claims of a test cannot be encoded")
	}
	return encode(h) + "." + encode(c)
}

func (p *idp) rs256(claims map[string]any) string { return signRSA(p.rsa, "rsa", claims) }

func signRSA(key *rsa.PrivateKey, kid string, claims map[string]any) string {
	text := jwt(map[string]any{"alg": "RS256", "kid": kid}, claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + encode(signature)
}

func (p *idp) es256(claims map[string]any) string {
	text := jwt(map[string]any{"alg": "ES256", "kid": "ec"}, claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.ec, sum[:])
	if err != nil {
		panic(err)
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encode(signature[:])
}

// confused signs with HMAC, and takes as the secret what everyone knows: the
// public key.
func (p *idp) confused(claims map[string]any) string {
	der, err := x509.MarshalPKIXPublicKey(&p.rsa.PublicKey)
	if err != nil {
		panic(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	text := jwt(map[string]any{"alg": "HS256", "kid": "rsa"}, claims)
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// hs256 signs with the client's secret, which is symmetric: whoever has it could
// make tokens.
func hs256(claims map[string]any) string {
	text := jwt(map[string]any{"alg": "HS256"}, claims)
	mac := hmac.New(sha256.New, []byte(clientSecret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}
