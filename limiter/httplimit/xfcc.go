package httplimit

import "strings"

// lastForwardedURI returns the URI of the last element of an
// x-forwarded-client-cert header, in Envoy's form:
//
//	By=spiffe://a/b;Hash=0f;Subject="CN=x, O=\"y\"";URI=spiffe://a/c,By=…
//
// It reads the whole header and is strict: what is not well formed, or has not
// exactly one URI in its last element, is ok = false. A lenient parser could
// be led by a forged first element to see the last one elsewhere than the
// proxy put it.
func lastForwardedURI(header string) (uri string, ok bool) {
	rest := header
	for {
		var uris int
		uri, uris, rest, ok = forwardedElement(rest)
		if !ok {
			return "", false
		}
		if rest == "" {
			return uri, uris == 1 && uri != ""
		}
		rest = strings.TrimLeft(rest[1:], " \t") // the comma
	}
}

// forwardedElement reads one element; rest is "" or begins with the comma that
// ended it. uri is the last of the element's uris URIs.
func forwardedElement(s string) (uri string, uris int, rest string, ok bool) {
	for {
		eq := strings.IndexByte(s, '=')
		if eq <= 0 || !isWord(s[:eq]) {
			return "", 0, "", false
		}
		key := s[:eq]
		var value string
		if value, s, ok = forwardedValue(s[eq+1:]); !ok {
			return "", 0, "", false
		}
		if strings.EqualFold(key, "URI") {
			uri = value
			uris++
		}
		if s == "" || s[0] == ',' {
			return uri, uris, s, true
		}
		s = s[1:] // the semicolon
	}
}

// forwardedValue reads a value; rest is "" or begins with the comma or
// semicolon that ended it.
func forwardedValue(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		end := strings.IndexAny(s, `,;`)
		if end < 0 {
			end = len(s)
		}
		value = s[:end]
		// These have no meaning outside quotes, so their sender meant another
		// boundary than the one found here.
		return value, s[end:], !strings.ContainsAny(value, "\"= \t")
	}
	escaped := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			value, rest = s[1:i], s[i+1:]
			if escaped {
				value = unescape(value)
			}
			return value, rest, rest == "" || rest[0] == ',' || rest[0] == ';'
		}
	}
	return "", "", false
}

func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// unescape removes the backslash of each escaped byte.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
