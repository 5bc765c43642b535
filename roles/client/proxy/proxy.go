// Package proxy is the sidecar: a reverse proxy for HTTP/1.1, HTTP/2 and gRPC
// in front of a service (inbound) or beside a caller (outbound), with the
// limiter's decision between the two halves. It adds no failure of its own:
// without a control plane, without configuration for a service, and when the
// limiter panics, a request is forwarded.
package proxy

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync/atomic"

	"grl/limiter"
	"grl/limiter/httplimit"
)

// Options are what both proxies need.
type Options struct {
	// Limiter decides. Required.
	Limiter *limiter.Limiter
	// Identity finds the caller; its trusted proxies are also those whose
	// X-Forwarded headers are kept. nil: every caller is unknown.
	Identity *httplimit.Identity
	// Procedure names what a request asks for; nil: httplimit.Procedure.
	Procedure func(*http.Request) string
	// AttemptHeaders count the attempts of a request from 1; nil:
	// x-envoy-attempt-count. grpc-previous-rpc-attempts is always read.
	AttemptHeaders []string
	// TLS is for https upstreams; nil: the roots of the system.
	TLS *tls.Config
	// Log receives what net/http complains about, at level debug; nil: nobody.
	Log *slog.Logger
}

// Proxy is one of the two proxies, an http.Handler. Serve it with Server and
// not through a ServeMux, which would redirect the paths it thinks unclean.
type Proxy struct {
	reverse    httputil.ReverseProxy
	transports *transports
	log        *slog.Logger

	// refuse answers what cannot be forwarded and reports whether it did.
	refuse func(w http.ResponseWriter, r *http.Request) bool
	decide func(r *http.Request) (httplimit.Drop, bool)

	upstreamErrors atomic.Uint64
	silent         atomic.Bool // upstream gave no answer to the last request
}

func newProxy(o Options, priorKnowledge bool, rewrite func(*httputil.ProxyRequest)) *Proxy {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{transports: newTransports(o.TLS, priorKnowledge), log: log}
	p.reverse = httputil.ReverseProxy{
		Rewrite:   rewrite,
		Transport: p.transports,
		// FlushInterval stays 0: ReverseProxy flushes each write of a body of
		// unknown length, which is every stream, and -1 would cost a timer and
		// a system call on every other response.
		BufferPool:     new(buffers),
		ModifyResponse: p.answered,
		ErrorHandler:   p.fail,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return p
}

// ServeHTTP forwards r, or answers at once if it is dropped.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if unforwardable(w, r) || p.refuse != nil && p.refuse(w, r) {
		return
	}
	if d, dropped := p.decide(r); dropped {
		httplimit.WriteDrop(w, r, d)
		return
	}
	p.reverse.ServeHTTP(w, r)
}

// UpstreamErrors returns how many requests got no answer from upstream and
// were answered 502, those whose client had gone not counted.
func (p *Proxy) UpstreamErrors() uint64 { return p.upstreamErrors.Load() }

// CloseIdleConnections closes the connections to upstreams that carry no
// request.
func (p *Proxy) CloseIdleConnections() { p.transports.closeIdle() }

// unforwardable refuses what no reverse proxy can pass on.
func unforwardable(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method == http.MethodConnect:
		// Allow is required with 405; RFC 9110 section 15.5.6.
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE")
		writeProblem(w, http.StatusMethodNotAllowed, "grl forwards requests and opens no tunnels: send the request itself, without CONNECT")
	case r.URL.Opaque != "":
		// The host of such a target depends on who reads it.
		writeProblem(w, http.StatusBadRequest, "the request target has a scheme but no //host")
	default:
		return false
	}
	return true
}

// answered takes in that upstream answered.
func (p *Proxy) answered(res *http.Response) error {
	if p.silent.Load() && p.silent.Swap(false) {
		p.log.InfoContext(res.Request.Context(), "upstream answers again", "host", res.Request.URL.Host)
	}
	keepTrailers(res)
	return nil
}

// fail answers a request that upstream did not. A gRPC client reads the 502 as
// UNAVAILABLE.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		p.upstreamErrors.Add(1)
		if !p.silent.Swap(true) { // further ones are only counted
			p.log.WarnContext(r.Context(), "upstream gives no answer", "host", r.URL.Host, "err", err)
		}
	}
	detail := "upstream gave no answer"
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		detail = "upstream's certificate is not trusted"
	}
	writeProblem(w, http.StatusBadGateway, detail)
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	body, _ := json.Marshal(struct { // strings and a number always encode
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
