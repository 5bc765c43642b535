package proxy

import (
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
)

// keepRequest undoes what ReverseProxy and http.Transport would change in a
// request that a sidecar should pass as it came.
func keepRequest(pr *httputil.ProxyRequest) {
	pr.Out.Host = pr.In.Host
	pr.Out.URL.User = nil // or it would become an Authorization header
	// ReverseProxy drops parameters that it cannot parse. The decision reads
	// none but connect=v1, so the workload may have its query byte for byte.
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	dropH2CUpgrade(pr.Out.Header)
	if len(pr.In.Trailer) > 0 && pr.Out.Body != nil {
		pr.Out.Body = &trailerBody{ReadCloser: pr.Out.Body, in: pr.In.Trailer, out: pr.Out.Trailer}
	}
}

// dropH2CUpgrade ignores an offer to go on in HTTP/2, as any server may: behind
// an upgrade that upstream took, request after request would pass undecided.
func dropH2CUpgrade(h http.Header) {
	for _, v := range h["Upgrade"] {
		if strings.Contains(strings.ToLower(v), "h2c") {
			h.Del("Upgrade")
			h.Del("Connection")
			h.Del("HTTP2-Settings")
			return
		}
	}
}

// trailerBody hands the trailers of a request on. ReverseProxy clones the map
// before net/http has filled it, which happens at the end of the body.
type trailerBody struct {
	io.ReadCloser
	in, out http.Header
}

func (b *trailerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		for k, v := range b.in {
			b.out[k] = v
		}
	}
	return n, err
}

// keepTrailers makes room for the trailers of an answer that came by HTTP/2
// with a length: HTTP/1.1 has them only after a body of unknown length.
func keepTrailers(res *http.Response) {
	if len(res.Trailer) > 0 && res.ContentLength >= 0 {
		res.Header.Del("Content-Length")
		res.ContentLength = -1
	}
}

var forwardingHeaders = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// forwardedFor sets the X-Forwarded headers: a trusted peer's chain goes on,
// anybody else's begins anew.
func forwardedFor(pr *httputil.ProxyRequest, trusted bool) {
	if !trusted {
		pr.SetXForwarded()
		return
	}
	const chain = "X-Forwarded-For"
	if v, ok := pr.In.Header[chain]; ok {
		pr.Out.Header[chain] = v
	}
	pr.SetXForwarded()
	for _, name := range forwardingHeaders {
		if v, ok := pr.In.Header[name]; ok && name != chain {
			pr.Out.Header[name] = v // the edge knows host and scheme, not this hop
		}
	}
}

// keepForwarding passes the X-Forwarded headers as they came.
func keepForwarding(pr *httputil.ProxyRequest) {
	for _, name := range forwardingHeaders {
		if v, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = v
		}
	}
}
