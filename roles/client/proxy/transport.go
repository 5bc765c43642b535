package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"grl/limiter/httplimit"
)

// transports reach upstreams, one for each way to speak HTTP.
type transports struct {
	http1  *http.Transport
	h2c    *http.Transport // HTTP/2 without TLS, by prior knowledge
	secure *http.Transport // TLS; ALPN chooses
	// priorKnowledge sends everything by h2c, not gRPC alone.
	priorKnowledge bool
}

func newTransports(config *tls.Config, priorKnowledge bool) *transports {
	var http1, h2c, secure http.Protocols
	http1.SetHTTP1(true)
	h2c.SetUnencryptedHTTP2(true)
	secure.SetHTTP1(true)
	secure.SetHTTP2(true)
	t := &transports{
		http1:          newTransport(&http1, idleHTTP1),
		h2c:            newTransport(&h2c, idleHTTP2),
		secure:         newTransport(&secure, idleTLS),
		priorKnowledge: priorKnowledge,
	}
	if config != nil {
		t.secure.TLSClientConfig = config.Clone()
	}
	return t
}

// How long a connection to an upstream is kept without a request. In HTTP/1.1 a
// server closes an idle one without a word, and a request with a body that is
// on its way then is lost and may not be sent again: it would fail because of
// grl, whose client had a connection of its own. So grl lets go first: servers
// keep them for 2 s (gunicorn), 5 s (Node, Apache, uvicorn) or longer. A new
// one costs little on one machine; over TLS more, so it is kept for as long as
// nearly all allow. HTTP/2 says goodbye.
const (
	idleHTTP1 = time.Second
	idleTLS   = 4 * time.Second
	idleHTTP2 = 90 * time.Second
)

// newTransport returns a transport that adds nothing to a request and keeps as
// many connections as a busy workload needs: net/http keeps two to a host.
// There is no time limit on an answer; the client's is passed on by
// cancellation.
func newTransport(protocols *http.Protocols, idle time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 nil, // a sidecar that obeys HTTP_PROXY would send its workload's traffic away
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       idle,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		Protocols:             protocols,
		HTTP2:                 pings(),
	}
}

// pings notice a peer that is gone without a word within 45 seconds; a stream
// would else wait for as long as TCP does.
func pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
}

// RoundTrip implements http.RoundTripper.
func (t *transports) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Scheme == "https":
		return t.secure.RoundTrip(r)
	case len(r.Header["Upgrade"]) > 0:
		return t.http1.RoundTrip(r) // HTTP/2 cannot upgrade
	case t.priorKnowledge || httplimit.IsGRPC(r):
		return t.h2c.RoundTrip(r)
	default:
		return t.http1.RoundTrip(r)
	}
}

func (t *transports) closeIdle() {
	t.http1.CloseIdleConnections()
	t.h2c.CloseIdleConnections()
	t.secure.CloseIdleConnections()
}

// buffers are those through which bodies are copied.
type buffers struct{ pool sync.Pool }

type buffer [32 << 10]byte // bytes, as ReverseProxy would allocate each time

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*buffer); ok {
		return p[:]
	}
	return new(buffer)[:]
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(s []byte) { b.pool.Put((*buffer)(s)) }
