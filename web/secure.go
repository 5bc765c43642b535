package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// answerWithin is how long an answer may take from the request on, so that a
// reader that does not read holds nothing. Pages, streams and downloads give
// themselves more when they write.
const answerWithin = time.Minute

// contentSecurityPolicy allows our own files and nothing inline.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// secure wraps next with what every answer needs: headers, the check of the
// Host header, and the refusal of forms from other sites and of methods that no
// page has.
func secure(o Options, next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	safe := crossOrigin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost:
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			http.Error(w, "Only GET, HEAD and POST: nothing else can be done here.", http.StatusMethodNotAllowed)
		}
	}))
	checked := CheckHost(o, safe)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // of browsers that do not know frame-ancestors
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // assets say otherwise
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWithin)) // a recorder of tests has none
		checked.ServeHTTP(w, r)
	})
}

// CheckHost lets only requests to hosts that o allows through to next, for what
// the dashboard's port serves besides it: a site that lets its name point to
// 127.0.0.1 would else read it. Of o only Hosts and AnyHost matter.
func CheckHost(o Options, next http.Handler) http.Handler {
	hosts := make([]string, len(o.Hosts))
	for i, h := range o.Hosts {
		hosts[i] = hostname(h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.AnyHost && !allowedHost(hostname(r.Host), hosts) {
			http.Error(w, "This controller does not answer under this host name. "+
				"Use localhost, or set public_url in [controller].", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostname returns the lower-case host of a Host header, without port, brackets
// and final dot.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil { // no port
		host = hostport
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		}
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// allowedHost reports whether host is loopback or one of names. A name that an
// attacker lets point to 127.0.0.1 is neither.
func allowedHost(host string, names []string) bool {
	if host == "localhost" || host != "" && slices.Contains(names, host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
