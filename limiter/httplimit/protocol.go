package httplimit

import (
	"net/http"
	"strings"
)

// protocol is the RPC protocol of a request; it decides how the procedure is
// named and what a drop looks like.
type protocol uint8

const (
	plainHTTP protocol = iota
	grpc
	grpcWeb
	grpcWebText // gRPC-Web with base64 bodies
	connectUnary
	connectStream
)

func protocolOf(r *http.Request) protocol {
	switch r.Method {
	case http.MethodPost:
		return protocolOfPost(r.Header)
	case http.MethodGet:
		if hasParameter(r.URL.RawQuery, "connect=v1") {
			return connectUnary
		}
	}
	return plainHTTP
}

func protocolOfPost(h http.Header) protocol {
	rest, ok := strings.CutPrefix(first(h, "Content-Type"), "application/")
	if !ok {
		return plainHTTP
	}
	if sub, ok := strings.CutPrefix(rest, "grpc"); ok {
		switch {
		case ends(sub):
			return grpc
		case strings.HasPrefix(sub, "-web-text") && ends(sub[len("-web-text"):]):
			return grpcWebText
		case strings.HasPrefix(sub, "-web") && ends(sub[len("-web"):]):
			return grpcWeb
		}
		return plainHTTP
	}
	if strings.HasPrefix(rest, "connect+") {
		return connectStream
	}
	if _, ok := h["Connect-Protocol-Version"]; ok {
		for _, codec := range []string{"proto", "json"} {
			if sub, ok := strings.CutPrefix(rest, codec); ok && (sub == "" || sub[0] == ';' || sub[0] == ' ') {
				return connectUnary
			}
		}
	}
	return plainHTTP
}

// IsGRPC reports whether r is a gRPC request, not a gRPC-Web one.
func IsGRPC(r *http.Request) bool { return protocolOf(r) == grpc }

// ends reports whether a media type's name ends before s.
func ends(s string) bool {
	return s == "" || s[0] == '+' || s[0] == ';' || s[0] == ' '
}

func hasParameter(query, want string) bool {
	for query != "" {
		var p string
		p, query, _ = strings.Cut(query, "&")
		if p == want {
			return true
		}
	}
	return false
}

// first returns the first value of a header whose name is canonical.
func first(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}
