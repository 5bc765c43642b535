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

// Bucket returns the bucket that stands for the cap: global, enforced, before
// all that are configured.
func (c *Cap) Bucket() Bucket {
	return Bucket{
		Service:  c.Service,
		Name:     CapPrefix + c.ID,
		Match:    c.Match,
		LimitRPS: c.LimitRPS,
		Block:    c.Block,
		Behavior: Deny,
		Cap:      c,
	}
}

// IsCap reports whether a bucket's full name is that of a cap.
func IsCap(fullName string) bool {
	return strings.HasPrefix(fullName[strings.LastIndexByte(fullName, '/')+1:], CapPrefix)
}
