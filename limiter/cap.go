package limiter

import (
	"strings"
	"time"
)

// CapPrefix begins the names of the buckets that stand for caps. A bucket of a
// limits file has no such name.
const CapPrefix = "_cap-"

// Cap is an incident limit: it is tried before the buckets of its service, and
// what it lets through goes on to them. What a service exempts is not capped.
type Cap struct {
	ID      string // unique for ever
	Service string
	Match   Match
	// LimitRPS is in requests per second, in [0.001, 1e9]; 0 only with Block.
	LimitRPS float64
	// Block drops everything, until the cap ends.
	Block  bool
	Author string
	Reason string
	// Ends is when the cap ends, on this process's clock: it may carry a
	// monotonic reading, which then decides. From then on it ramps out, see
	// law.RampOut.
	Ends time.Time
}

// endsSlack is how far apart two ends of a cap may be and count as one: each
// time that it travels, its end is known anew to the delay of a message.
const endsSlack = time.Second

// same reports whether c and d are the same cap.
func (c Cap) same(d Cap) bool {
	apart := c.Ends.Sub(d.Ends).Abs()
	c.Ends = d.Ends
	return c == d && apart <= endsSlack
}

// Bucket returns the bucket that stands for the cap: global, enforced, before
// all that are configured. It does not fade while nobody speaks: it has an end.
func (c *Cap) Bucket() Bucket {
	return Bucket{
		Service:  c.Service,
		Name:     CapPrefix + c.ID,
		Match:    c.Match,
		LimitRPS: c.LimitRPS,
		Block:    c.Block,
		Behavior: Deny,
		Cap:      c,

		HoldOnSilence: true,
	}
}

// IsCap reports whether a bucket's full name is that of a cap.
func IsCap(fullName string) bool {
	return strings.HasPrefix(fullName[strings.LastIndexByte(fullName, '/')+1:], CapPrefix)
}
