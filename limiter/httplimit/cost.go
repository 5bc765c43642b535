package httplimit

import (
	"net/http"
	"net/textproto"
	"slices"

	"grl/limiter"
)

const maxCost = 1_000_000

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
		if v := h[name]; len(v) == 1 {
			if c := parseCost(v[0]); c != 0 {
				return c
			}
		}
	}
	return 0
}

// parseCost reads a number from 1 to maxCost: digits only, no leading zero.
// Anything else is 0.
func parseCost(s string) uint32 {
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
	if n > maxCost {
		return 0
	}
	return n
}
