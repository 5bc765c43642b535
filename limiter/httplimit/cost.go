package httplimit

import (
	"net/http"
	"net/textproto"
	"slices"

	"grl/limiter"
)

// costHeaders returns the headers from which buckets of s take their cost,
// canonical, in the order of the buckets.
func costHeaders(s *limiter.Service) []string {
	var headers []string
	for i := range s.Buckets {
		h := textproto.CanonicalMIMEHeaderKey(s.Buckets[i].Cost.Header)
		if h != "" && !slices.Contains(headers, h) {
			headers = append(headers, h)
		}
	}
	return headers
}

// cost returns the cost that the first of headers with a valid one gives, 0
// if none does. A request has one cost, also where buckets name several
// headers.
func cost(h http.Header, headers []string) uint32 {
	for _, name := range headers {
		if c := number(h, name); c != 0 {
			return c
		}
	}
	return 0
}

const maxNumber = 1_000_000

// number returns the value of a header whose name is canonical, a number from
// 1 to maxNumber; 0 if it is anything else, or there is not just one.
func number(h http.Header, canonical string) uint32 {
	if v := h[canonical]; len(v) == 1 {
		return parseNumber(v[0])
	}
	return 0
}

// parseNumber reads a number from 1 to maxNumber: digits only, no leading
// zero. Anything else is 0.
func parseNumber(s string) uint32 {
	if len(s) == 0 || len(s) > len("1000000") || s[0] == '0' {
		return 0
	}
	var n uint32
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = n*10 + uint32(s[i]-'0')
	}
	if n > maxNumber {
		return 0
	}
	return n
}
