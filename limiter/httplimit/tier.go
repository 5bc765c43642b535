package httplimit

import (
	"net/http"
	"net/textproto"

	"grl/limiter"
)

// tiers says which Request.Tier a request's header stands for. The zero value
// is of a service without such a header.
type tiers struct {
	header  string            // canonical
	byValue map[string]uint32 // value → limiter.Request.Tier
}

func newTiers(s *limiter.Service) tiers {
	t := tiers{header: textproto.CanonicalMIMEHeaderKey(s.TierHeader()), byValue: map[string]uint32{}}
	for _, v := range s.TierValues() {
		t.byValue[v] = s.Tier(v)
	}
	return t
}

// of returns the tier of a request, 0 if its header has no value that selects
// one, or comes twice.
func (t tiers) of(h http.Header) uint32 {
	if t.header == "" {
		return 0
	}
	if v := h[t.header]; len(v) == 1 {
		return t.byValue[v[0]]
	}
	return 0
}
