package httplimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"grl/limiter"
)

// IdentityConfig says who is asked for the name of a request's caller. The
// zero value believes a verified client certificate and nobody else.
type IdentityConfig struct {
	// Headers name the caller, the first that is set; unverified. Any peer can
	// write what it likes into them.
	Headers []string
	// TrustedProxies are the peers whose x-forwarded-client-cert is believed.
	// They must remove what their own clients send under that name.
	TrustedProxies []netip.Prefix
	// SPIFFETemplate says where in the path of a SPIFFE id the caller's name
	// stands, as "/ns/*/sa/{caller}". Empty: the last segment.
	SPIFFETemplate string
	// Fixed is the name when nothing else gives one; unverified. Empty: none.
	Fixed string
}

// Identity finds the caller of a request. Make one with NewIdentity; nil finds
// nobody. It is immutable.
type Identity struct {
	headers []string // canonical
	trusted []netip.Prefix
	path    spiffePath
	fixed   string
}

// NewIdentity returns the identity that c describes. It returns an error if
// the template has no {caller} or the fixed name is not one.
func NewIdentity(c IdentityConfig) (*Identity, error) {
	path, err := parseSPIFFEPath(c.SPIFFETemplate)
	if err != nil {
		return nil, err
	}
	if c.Fixed != "" && callerName(c.Fixed) == "" {
		return nil, fmt.Errorf("read fixed caller: %q is no name of at most %d characters of A-Z a-z 0-9 . _ : / -", c.Fixed, maxName)
	}
	id := &Identity{path: path, fixed: c.Fixed}
	for _, h := range c.Headers {
		id.headers = append(id.headers, textproto.CanonicalMIMEHeaderKey(h))
	}
	for _, p := range c.TrustedProxies {
		id.trusted = append(id.trusted, p.Masked())
	}
	return id, nil
}

// Caller returns the name of the service that sent r, and whether it was
// proved. In order of trust: the verified client certificate, the
// x-forwarded-client-cert of a trusted proxy (these two are proof), the
// headers, the fixed name. "" means that the request names nobody, or names it
// with something that is no name.
func (id *Identity) Caller(r *http.Request) (name string, verified bool) {
	if id == nil {
		return "", false
	}
	if name := id.fromCertificate(r); name != "" {
		return name, true
	}
	if name := id.fromForwardedCertificate(r); name != "" {
		return name, true
	}
	for _, h := range id.headers {
		if v := r.Header[h]; len(v) > 0 && v[0] != "" {
			// The first header that is set decides: falling through to the next
			// would let a caller choose which one counts.
			return callerName(v[0]), false
		}
	}
	return id.fixed, false
}

// Trusts reports whether the peer of r is one of the trusted proxies.
func (id *Identity) Trusts(r *http.Request) bool {
	if id == nil || len(id.trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	for _, p := range id.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Named reports whether a header of r names the caller, well or badly.
func (id *Identity) Named(r *http.Request) bool {
	if id == nil {
		return false
	}
	for _, h := range id.headers {
		if v := r.Header[h]; len(v) > 0 && v[0] != "" {
			return true
		}
	}
	return false
}

// fromCertificate reads the SPIFFE id of the verified client certificate. An
// SVID has exactly one URI, so a certificate with more proves nothing.
func (id *Identity) fromCertificate(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return ""
	}
	uris := r.TLS.VerifiedChains[0][0].URIs
	if len(uris) != 1 || uris[0].Scheme != "spiffe" || uris[0].Host == "" {
		return ""
	}
	return callerName(id.path.caller(uris[0].Path))
}

const forwardedClientCert = "X-Forwarded-Client-Cert"

func (id *Identity) fromForwardedCertificate(r *http.Request) string {
	lines := r.Header[forwardedClientCert]
	if len(lines) == 0 || !id.Trusts(r) {
		return ""
	}
	// Several lines are one list; the last element is what the nearest proxy
	// appended, and the only one it vouches for.
	uri, ok := lastForwardedURI(lines[len(lines)-1])
	if !ok {
		return ""
	}
	rest, ok := strings.CutPrefix(uri, "spiffe://")
	if !ok {
		return ""
	}
	domain, _, _ := strings.Cut(rest, "/")
	if domain == "" {
		return ""
	}
	return callerName(id.path.caller(rest[len(domain):]))
}

// maxName is the greatest length of a caller or procedure, in bytes.
const maxName = 256

// validName reports whether s may name a caller or procedure.
func validName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '.', c == '_', c == ':', c == '/', c == '-':
		default:
			return false
		}
	}
	return true
}

// callerName returns s if it may name a caller, else "". The names that stand
// for callers without one cannot be claimed.
func callerName(s string) string {
	if !validName(s) || s == limiter.UnknownCaller || s == limiter.Other {
		return ""
	}
	return s
}
