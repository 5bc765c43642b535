package httplimit_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"grl/limiter/httplimit"
)

func identity(t testing.TB, c httplimit.IdentityConfig) *httplimit.Identity {
	t.Helper()
	id, err := httplimit.NewIdentity(c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// verified returns the state of a connection whose client proved to own uris.
func verified(t testing.TB, uris ...string) *tls.ConnectionState {
	t.Helper()
	leaf := &x509.Certificate{}
	for _, s := range uris {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		leaf.URIs = append(leaf.URIs, u)
	}
	return &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{leaf},
		VerifiedChains:   [][]*x509.Certificate{{leaf}},
	}
}

func TestCaller(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	headers := []string{"rpc-caller", "x-grl-caller"}
	const trusted, stranger = "10.1.2.3:5555", "192.0.2.1:5555"
	unverified := verified(t, "spiffe://a/ns/x/sa/checkout")
	unverified.VerifiedChains = nil

	tests := []struct {
		name         string
		config       httplimit.IdentityConfig
		tls          *tls.ConnectionState
		peer         string
		header       http.Header
		want         string
		wantVerified bool
	}{
		{name: "nobody"},
		{name: "a header", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"X-Grl-Caller": {"checkout"}}, want: "checkout"},
		{name: "the first header that is set", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {"web"}, "X-Grl-Caller": {"checkout"}}, want: "web"},
		{name: "an empty header is not set", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {""}, "X-Grl-Caller": {"checkout"}}, want: "checkout"},
		{name: "a bad first header hides the second", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {"a b"}, "X-Grl-Caller": {"checkout"}}},
		{name: "a bad header hides the fixed name", config: httplimit.IdentityConfig{Headers: headers, Fixed: "me"}, header: http.Header{"Rpc-Caller": {"a\u00e9"}}},
		{name: "an unknown header", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"X-Other": {"checkout"}}},
		{name: "256 bytes", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {strings.Repeat("a", 256)}}, want: strings.Repeat("a", 256)},
		{name: "257 bytes", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {strings.Repeat("a", 257)}}},
		{name: "all characters", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {"Az09._:/-"}}, want: "Az09._:/-"},
		{name: "_unknown cannot be claimed", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {"_unknown"}}},
		{name: "_other cannot be claimed", config: httplimit.IdentityConfig{Headers: headers}, header: http.Header{"Rpc-Caller": {"_other"}}},
		{name: "fixed", config: httplimit.IdentityConfig{Fixed: "me"}, want: "me"},
		{name: "a header before the fixed name", config: httplimit.IdentityConfig{Headers: headers, Fixed: "me"}, header: http.Header{"Rpc-Caller": {"web"}}, want: "web"},

		{name: "certificate, last segment", tls: verified(t, "spiffe://a/ns/x/sa/checkout"), want: "checkout", wantVerified: true},
		{name: "certificate before header", config: httplimit.IdentityConfig{Headers: headers}, tls: verified(t, "spiffe://a/checkout"), header: http.Header{"Rpc-Caller": {"web"}}, want: "checkout", wantVerified: true},
		{name: "certificate, template", config: httplimit.IdentityConfig{SPIFFETemplate: "/ns/*/sa/{caller}"}, tls: verified(t, "spiffe://a/ns/x/sa/checkout"), want: "checkout", wantVerified: true},
		{name: "template in the middle", config: httplimit.IdentityConfig{SPIFFETemplate: "/svc/{caller}/*"}, tls: verified(t, "spiffe://a/svc/checkout/7"), want: "checkout", wantVerified: true},
		{name: "template does not fit", config: httplimit.IdentityConfig{SPIFFETemplate: "/ns/*/sa/{caller}"}, tls: verified(t, "spiffe://a/ns/x/role/checkout")},
		{name: "path longer than the template", config: httplimit.IdentityConfig{SPIFFETemplate: "/ns/*/sa/{caller}"}, tls: verified(t, "spiffe://a/ns/x/sa/checkout/y")},
		{name: "path shorter than the template", config: httplimit.IdentityConfig{SPIFFETemplate: "/ns/*/sa/{caller}"}, tls: verified(t, "spiffe://a/ns/x/sa")},
		{name: "certificate not verified", tls: unverified},
		{name: "certificate with two URIs", tls: verified(t, "spiffe://a/checkout", "spiffe://a/web")},
		{name: "certificate of another scheme", tls: verified(t, "https://a/checkout")},
		{name: "certificate without a domain", tls: verified(t, "spiffe:///checkout")},
		{name: "certificate without a path", tls: verified(t, "spiffe://a")},
		{name: "certificate without a URI", tls: verified(t)},
		{name: "connection without a certificate", tls: &tls.ConnectionState{}},

		{name: "forwarded certificate", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"By=spiffe://a/me;URI=spiffe://a/checkout"}}, want: "checkout", wantVerified: true},
		{name: "forwarded over IPv6", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: "[fd00::7]:1", header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/checkout"}}, want: "checkout", wantVerified: true},
		{name: "forwarded over mapped IPv4", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: "[::ffff:10.1.2.3]:1", header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/checkout"}}, want: "checkout", wantVerified: true},
		{name: "forwarded with a template", config: httplimit.IdentityConfig{TrustedProxies: proxies, SPIFFETemplate: "/ns/*/sa/{caller}"}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/ns/x/sa/checkout"}}, want: "checkout", wantVerified: true},
		{name: "forwarded by a stranger", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: stranger, header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/checkout"}}},
		{name: "forwarded on a Unix socket", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: "@", header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/checkout"}}},
		{name: "the last element counts", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/admin,URI=spiffe://a/checkout"}}, want: "checkout", wantVerified: true},
		{name: "the last line counts", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/admin", "URI=spiffe://a/checkout"}}, want: "checkout", wantVerified: true},
		{name: "the last element has no URI", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/admin,Hash=00"}}},
		{name: "forwarded, another scheme", config: httplimit.IdentityConfig{TrustedProxies: proxies}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"URI=http://a/checkout"}}},
		{name: "malformed falls to the header, unverified", config: httplimit.IdentityConfig{TrustedProxies: proxies, Headers: headers}, peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {`URI="spiffe://a/admin`}, "Rpc-Caller": {"web"}}, want: "web"},
		{name: "certificate before forwarded certificate", config: httplimit.IdentityConfig{TrustedProxies: proxies}, tls: verified(t, "spiffe://a/edge"), peer: trusted, header: http.Header{"X-Forwarded-Client-Cert": {"URI=spiffe://a/checkout"}}, want: "edge", wantVerified: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.TLS = tt.tls
			if tt.peer != "" {
				r.RemoteAddr = tt.peer
			}
			if tt.header != nil {
				r.Header = tt.header
			}
			name, proved := identity(t, tt.config).Caller(r)
			if name != tt.want || proved != tt.wantVerified {
				t.Errorf("Caller = %q, %v, want %q, %v", name, proved, tt.want, tt.wantVerified)
			}
		})
	}
}

func TestNilIdentityKnowsNobody(t *testing.T) {
	var id *httplimit.Identity
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = verified(t, "spiffe://a/checkout")
	if name, proved := id.Caller(r); name != "" || proved || id.Trusts(r) || id.Named(r) {
		t.Errorf("nil identity: caller %q, verified %v, trusts %v, named %v", name, proved, id.Trusts(r), id.Named(r))
	}
}

func TestNewIdentityRefuses(t *testing.T) {
	for _, c := range []httplimit.IdentityConfig{
		{SPIFFETemplate: "ns/{caller}"},
		{SPIFFETemplate: "/ns/*"},
		{SPIFFETemplate: "/{caller}/{caller}"},
		{SPIFFETemplate: "/ns//{caller}"},
		{SPIFFETemplate: "/ns/x*/{caller}"},
		{SPIFFETemplate: "/ns/{name}/{caller}"},
		{Fixed: "two words"},
		{Fixed: "_other"},
	} {
		if _, err := httplimit.NewIdentity(c); err == nil {
			t.Errorf("NewIdentity(%+v) gave no error", c)
		}
	}
}

func TestCallerAllocatesNothing(t *testing.T) {
	id := identity(t, httplimit.IdentityConfig{
		Headers:        []string{"rpc-caller", "x-grl-caller", "x-envoy-downstream-service-cluster"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		SPIFFETemplate: "/ns/*/sa/{caller}",
	})
	byHeader := httptest.NewRequest("GET", "/", nil)
	byHeader.Header.Set("x-grl-caller", "checkout")
	byCertificate := httptest.NewRequest("GET", "/", nil)
	byCertificate.TLS = verified(t, "spiffe://a/ns/x/sa/checkout")
	forwarded := httptest.NewRequest("GET", "/", nil)
	forwarded.RemoteAddr = "10.0.0.1:80"
	forwarded.Header.Set("x-forwarded-client-cert", `Subject="CN=a,O=b";URI=spiffe://a/ns/x/sa/checkout`)
	for name, r := range map[string]*http.Request{"header": byHeader, "certificate": byCertificate, "forwarded": forwarded} {
		if got, _ := id.Caller(r); got != "checkout" {
			t.Errorf("%s: Caller = %q, want checkout", name, got)
		}
		if n := testing.AllocsPerRun(100, func() { id.Caller(r) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
