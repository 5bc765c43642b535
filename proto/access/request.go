package access

import (
	"crypto/rand"
	"net"
	"net/http"
	"strings"
)

// Names of the cookie with a session: with the prefix a browser sends it back
// only over TLS and only to this very host.
const (
	secureCookie = "__Host-grl"
	plainCookie  = "grl"
)

const (
	requestID    = "X-Request-Id"
	maxRequestID = 64
	maxBearer    = 512 // of a token or session, which are shorter
)

// CookieName returns the name of the cookie that carries a session on requests
// like r.
func CookieName(r *http.Request) string {
	if r.TLS != nil {
		return secureCookie
	}
	return plainCookie
}

// bearer returns the token or session that r carries, "" if it has none: that of
// the Authorization header, else of the cookie.
func bearer(r *http.Request) string {
	secret := ""
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, rest, _ := strings.Cut(header, " ")
		if strings.EqualFold(scheme, "Bearer") {
			secret = strings.TrimSpace(rest)
		}
	} else if c, err := r.Cookie(CookieName(r)); err == nil {
		secret = c.Value
	}
	if len(secret) > maxBearer {
		return ""
	}
	return secret
}

// address returns the peer's address without its port.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr // of an in-memory network
	}
	return host
}

// idOf returns the id under which logs and the audit know r: what the caller
// gave it, if that is harmless, else a new one.
func idOf(r *http.Request) string {
	id := r.Header.Get(requestID)
	if id == "" || len(id) > maxRequestID {
		return rand.Text()
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return rand.Text()
		}
	}
	return id
}
