package httplimit

import (
	"net/http"
	"net/textproto"
)

const (
	// envoyAttempts counts attempts from 1.
	envoyAttempts = "X-Envoy-Attempt-Count"
	// grpcAttempts is gRPC's own, which counts the attempts before this one.
	grpcAttempts = "Grpc-Previous-Rpc-Attempts"
)

// attemptHeaders returns the canonical names of headers, those of the default
// for nil.
func attemptHeaders(headers []string) []string {
	if headers == nil {
		return []string{envoyAttempts}
	}
	canonical := make([]string, len(headers))
	for i, h := range headers {
		canonical[i] = textproto.CanonicalMIMEHeaderKey(h)
	}
	return canonical
}

// attempt returns how many attempts came before this one: the most that gRPC's
// header or one of headers says. A header that is no number from 1 to
// 1,000,000, or comes twice, says nothing.
func attempt(h http.Header, headers []string) uint32 {
	before := number(h, grpcAttempts)
	for _, name := range headers {
		if n := number(h, name); n > 0 {
			before = max(before, n-1)
		}
	}
	return before
}
