package proxy

import (
	"cmp"
	"fmt"
	"net/http/httputil"
	"net/url"
	"strconv"

	"grl/limiter"
	"grl/limiter/httplimit"
)

// NewInbound returns the proxy in front of service, whose workload listens at
// upstream: http:// (gRPC by HTTP/2 with prior knowledge, all else by
// HTTP/1.1), h2c:// (all but upgrades by HTTP/2 with prior knowledge) or
// https:// (what ALPN agrees on). It decides the requests of a service that is
// enforced inbound or has no configuration, and only forwards the others.
func NewInbound(service, upstream string, o Options) (*Proxy, error) {
	target, priorKnowledge, err := parseUpstream(upstream)
	if err != nil {
		return nil, err
	}
	p := newProxy(o, priorKnowledge, func(pr *httputil.ProxyRequest) {
		pr.Out.URL.Scheme, pr.Out.URL.Host = target.Scheme, target.Host
		keepRequest(pr)
		// Foreign hops end here: a workload that copies the headers of its
		// request into its own calls would else seem to loop.
		pr.Out.Header.Del(hopHeader)
		forwardedFor(pr, o.Identity.Trusts(pr.In))
	})
	p.decide = httplimit.NewGate(o.Limiter, httplimit.Options{
		Service:        service,
		Identity:       o.Identity,
		Procedure:      o.Procedure,
		AttemptHeaders: o.AttemptHeaders,
		Side:           limiter.Inbound,
	}).Decide
	return p, nil
}

// parseUpstream returns the address with a scheme that http.Transport knows.
func parseUpstream(s string) (target *url.URL, priorKnowledge bool, err error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, false, fmt.Errorf("read upstream: %q is not of the form http://host:port", s)
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	if u.Hostname() == "" || err != nil || port == 0 || bare.String() != s && bare.String()+"/" != s {
		return nil, false, fmt.Errorf("read upstream: %q is not of the form http://host:port", s)
	}
	switch u.Scheme {
	case "http", "https":
	case "h2c":
		bare.Scheme, priorKnowledge = "http", true
	default:
		return nil, false, fmt.Errorf("read upstream: %q: scheme %q is none of http, https, h2c", s, u.Scheme)
	}
	return &bare, priorKnowledge, nil
}
