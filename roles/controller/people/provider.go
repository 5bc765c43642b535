package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	providerTimeout   = 10 * time.Second
	maxProviderAnswer = 1 << 20
)

// provider speaks to an OpenID provider. It is discovered at the first login,
// and anew at the next one where that failed: a controller starts without it.
type provider struct {
	settings OIDC
	http     *http.Client
	flows    flows

	mu    sync.Mutex // guards found
	found *oidc.Provider
}

func newProvider(o OIDC) (*provider, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	client := o.HTTP
	if client == nil {
		client = &http.Client{}
	}
	bounded := *client
	bounded.Timeout = providerTimeout
	// Only the provider that is configured, and what it names, is asked.
	bounded.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	bounded.Transport = boundedAnswers{transport}
	return &provider{settings: o, http: &bounded}, nil
}

// boundedAnswers fails reads beyond the bound.
type boundedAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxProviderAnswer)
	}
	return answer, err
}

// discover returns the provider as it describes itself.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	found := p.found
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.http), p.settings.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discover provider: %w", err)
	}
	if err := checkEndpoints(found); err != nil {
		return nil, fmt.Errorf("discover provider: %w", err)
	}
	p.mu.Lock()
	p.found = found
	p.mu.Unlock()
	return found, nil
}

// checkEndpoints refuses a description that would send secrets in plain text.
func checkEndpoints(found *oidc.Provider) error {
	var more struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := found.Claims(&more); err != nil {
		return err
	}
	for _, address := range []string{found.Endpoint().AuthURL, found.Endpoint().TokenURL, more.JWKS} {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || !protected(u) {
			return errors.New("an endpoint is missing, or neither https nor on loopback")
		}
	}
	return nil
}

// client is grl as the provider knows it.
func (p *provider) client(found *oidc.Provider) (*oauth2.Config, error) {
	secret, err := p.settings.secret()
	if err != nil {
		return nil, fmt.Errorf("read client secret: %w", err)
	}
	return &oauth2.Config{
		ClientID:     p.settings.ClientID,
		ClientSecret: secret,
		Endpoint:     found.Endpoint(),
		RedirectURL:  strings.TrimSuffix(p.settings.PublicURL, "/") + callbackPath,
		Scopes:       []string{oidc.ScopeOpenID, "email", "groups"},
	}, nil
}

// identify exchanges a code for an ID token and returns its claims, once all of
// it has been verified: signature with an asymmetric algorithm, issuer, audience,
// authorized party, times and nonce.
func (p *provider) identify(ctx context.Context, code string, f flow) (claims, error) {
	ctx = oidc.ClientContext(ctx, p.http)
	found, err := p.discover(ctx)
	if err != nil {
		return claims{}, err
	}
	client, err := p.client(found)
	if err != nil {
		return claims{}, err
	}
	answer, err := client.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if err != nil {
		return claims{}, fmt.Errorf("exchange code: %w", withoutBody(err))
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return claims{}, errors.New("exchange code: no ID token in the answer")
	}
	token, err := found.VerifierContext(ctx, &oidc.Config{
		ClientID:             p.settings.ClientID,
		SupportedSigningAlgs: []string{oidc.RS256, oidc.PS256, oidc.ES256, oidc.EdDSA},
	}).Verify(ctx, raw)
	if err != nil {
		return claims{}, fmt.Errorf("verify ID token: %w", err)
	}
	return readClaims(token, p.settings.ClientID, f.nonce)
}

// withoutBody leaves out what the provider answered, which may quote what it was
// sent.
func withoutBody(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return err
	}
	status := 0
	if answer.Response != nil {
		status = answer.Response.StatusCode
	}
	return fmt.Errorf("the provider answered %d %.64q", status, answer.ErrorCode)
}
