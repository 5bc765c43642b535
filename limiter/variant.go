package limiter

import "sync/atomic"

// variant is what tells requests of one caller to one procedure apart: they
// are counted in different leaves and may pass different cells.
type variant struct {
	verified bool   // the caller is, and a bucket asks for that
	retry    bool   // not the first attempt
	value    string // of the header by which tiers select; "" for any other
}

// plain reports whether v is of first attempts without a tier.
func (v variant) plain() bool { return !v.retry && v.value == "" }

// Bits of the number of a variant. What is above them is Request.Tier.
const (
	verifiedBit = 1 << iota
	retryBit
	tierBit
)

// variantOf returns the number of the variant that r belongs to.
func (m *matcher) variantOf(r *Request) int {
	n := 0
	if r.Verified && m.verified {
		n |= verifiedBit
	}
	if r.Attempt > 0 {
		n |= retryBit
	}
	// A tier of another configuration than this one counts as none.
	if int64(r.Tier) <= int64(len(m.tierValues)) {
		n |= int(r.Tier) * tierBit
	}
	return n
}

// variant returns the variant of a number.
func (m *matcher) variant(n int) variant {
	v := variant{verified: n&verifiedBit != 0, retry: n&retryBit != 0}
	if tier := n / tierBit; tier > 0 {
		v.value = m.tierValues[tier-1]
	}
	return v
}

// view holds the leaves for requests of one variant. Those of level own that
// are of variant 0 are in the callee, where the hot path finds them.
type view struct {
	variant
	number  int
	own     *atomic.Pointer[index]
	indexes [levels]atomic.Pointer[index]
}

// newViews returns a view for each variant that m tells apart, by number.
// first takes the leaves of level own that are of variant 0.
func newViews(m *matcher, first *atomic.Pointer[index]) []view {
	views := make([]view, tierBit*(1+len(m.tierValues)))
	none := noIndex()
	for i := range views {
		v := &views[i]
		v.number, v.variant = i, m.variant(i)
		for level := range v.indexes {
			v.indexes[level].Store(none)
		}
		v.own = &v.indexes[own]
	}
	views[0].own = first
	return views
}

// index returns the index of a level.
func (v *view) index(l level) *atomic.Pointer[index] {
	if l == own {
		return v.own
	}
	return &v.indexes[l]
}
