package httplimit

import "net/http"

const traceParent = "Traceparent"

// traceID returns the trace id of the W3C header traceparent, zero if there is
// none or it is malformed.
func traceID(h http.Header) (id [16]byte) {
	if v := h[traceParent]; len(v) == 1 {
		id, _ = parseTraceParent(v[0])
	}
	return id
}

// The parts of a traceparent of version 00, version-traceid-parentid-flags,
// which begins one of any version.
const (
	traceAt, parentAt, flagsAt = 3, 36, 53
	traceParentLen             = 55
)

// parseTraceParent reads a traceparent: lower-case hexadecimal digits, ids that
// are not zero. Of a version above 00 it reads what that has in common with
// 00, as the specification asks; version ff is none.
// Source: https://www.w3.org/TR/trace-context/, section 3.2.
func parseTraceParent(s string) (id [16]byte, ok bool) {
	if len(s) < traceParentLen || s[traceAt-1] != '-' || s[parentAt-1] != '-' || s[flagsAt-1] != '-' {
		return id, false
	}
	version, ok := hexByte(s[0], s[1])
	if !ok || version == 0xff || len(s) > traceParentLen && (version == 0 || s[traceParentLen] != '-') {
		return id, false
	}
	var parent [8]byte
	var flags [1]byte
	if !hexBytes(id[:], s[traceAt:]) || !hexBytes(parent[:], s[parentAt:]) || !hexBytes(flags[:], s[flagsAt:]) ||
		id == [16]byte{} || parent == [8]byte{} {
		return [16]byte{}, false
	}
	return id, true
}

// hexBytes fills b from the digits at the beginning of s.
func hexBytes(b []byte, s string) bool {
	for i := range b {
		v, ok := hexByte(s[2*i], s[2*i+1])
		if !ok {
			return false
		}
		b[i] = v
	}
	return true
}

func hexByte(high, low byte) (byte, bool) {
	h, l := hexDigit(high), hexDigit(low)
	return h<<4 | l&0xf, h < 16 && l < 16
}

// hexDigit returns the value of a lower-case digit, and 16 for anything else.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	default:
		return 16
	}
}
