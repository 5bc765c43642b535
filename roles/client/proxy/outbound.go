package proxy

import (
	"crypto/rand"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const callerHeader = "X-Grl-Caller"

// hopHeader holds the marks of the outbound proxies a request went through, a
// value each.
const hopHeader = "X-Grl-Hop"

// NewOutbound returns the proxy beside a caller, whose name is the fixed one
// of o.Identity. A request goes to its authority; the callee is named by
// rpc-service, else by the authority's first label. It decides the requests to
// services that are enforced outbound, and only forwards the others. Where no
// header of o.Identity names the caller, it sets x-grl-caller, so that the
// callee's sidecar knows whose request it is.
func NewOutbound(o Options) *Proxy {
	mark := rand.Text() // of this proxy alone, so that meeting it again is a loop
	p := newProxy(o, false, func(pr *httputil.ProxyRequest) {
		pr.Out.URL.Scheme, pr.Out.URL.Host = scheme(pr.In), pr.In.Host
		keepRequest(pr)
		keepForwarding(pr) // the workload speaks for itself; this is no hop of its own
		pr.Out.Header[hopHeader] = append(slices.Clip(pr.In.Header[hopHeader]), mark)
		if !o.Identity.Named(pr.In) {
			if name, _ := o.Identity.Caller(pr.In); name != "" {
				pr.Out.Header.Set(callerHeader, name)
			}
		}
	})
	p.refuse = func(w http.ResponseWriter, r *http.Request) bool { return refuseOutbound(w, r, mark) }
	p.decide = (&gates{opts: o}).decide
	return p
}

// refuseOutbound answers requests that lead nowhere.
func refuseOutbound(w http.ResponseWriter, r *http.Request, mark string) bool {
	switch {
	case slices.Contains(r.Header[hopHeader], mark):
		writeProblem(w, http.StatusLoopDetected, "the authority "+r.Host+" leads back to this proxy")
	case !validAuthority(r.Host):
		writeProblem(w, http.StatusBadRequest, "the request names no host to forward to")
	case r.URL.Scheme != "" && r.URL.Scheme != "http" && r.URL.Scheme != "https":
		writeProblem(w, http.StatusBadRequest, "the scheme of the request target is neither http nor https")
	default:
		return false
	}
	return true
}

func scheme(r *http.Request) string {
	if r.URL.Scheme == "https" {
		return "https"
	}
	return "http"
}

// validAuthority reports whether s is a host with or without a port and nothing
// else, as net/http lets more through.
func validAuthority(s string) bool {
	u := url.URL{Host: s}
	if u.Hostname() == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-._:[]", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// callee returns the service that r is for, "" if it has no name.
func callee(r *http.Request) string {
	if v := r.Header["Rpc-Service"]; len(v) > 0 && v[0] != "" {
		return v[0]
	}
	u := url.URL{Host: r.Host}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return "" // an address names no service
	}
	label, _, _ := strings.Cut(host, ".")
	return strings.ToLower(label)
}
