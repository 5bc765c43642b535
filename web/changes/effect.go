package changes

import (
	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// part is what a limit is divided over: an instance, or a caller in one.
type part struct{ bucket, instance, caller string }

// drops is what buckets are offered now, and what of it is and would be dropped, in
// requests per second.
type drops struct{ offered, now, then float64 }

// predict returns what changes would drop of what is offered now. A bucket that is
// removed drops nothing; one that is new is offered what nobody counts yet.
func predict(changes []*grlv1.BucketChange, cells []page.Cell) drops {
	next := make(map[string]*limiter.Bucket, len(changes)) // full name → as it would be; nil: not there
	for _, c := range changes {
		next[c.GetBucket()] = parsed(c.GetBucket(), c.GetAfter())
	}
	var d drops
	offered := make(map[part]float64)
	for i := range cells {
		c := &cells[i]
		b, judged := next[c.Bucket()]
		if !judged {
			continue
		}
		d.offered += c.OfferedRPS
		d.now += c.DroppedRPS
		if b == nil || b.Behavior != limiter.Deny {
			continue
		}
		p := part{bucket: c.Bucket(), instance: c.Instance}
		if b.PerCaller {
			p.caller = c.Caller
		}
		offered[p] += c.OfferedRPS
	}
	for p, rps := range offered {
		if b := next[p.bucket]; b.Block {
			d.then += rps
		} else {
			d.then += max(0, rps-b.Limit(p.instance))
		}
	}
	return d
}

// sentence says what rolling back would do.
func (d drops) sentence() string {
	switch {
	case d.offered <= 0:
		return "Cannot tell what rolling this back would drop: nothing is offered now."
	case d.now == 0 && d.then == 0:
		return "Rolling this back now would drop nothing."
	}
	return "Rolling this back now would drop " + share(d.then/d.offered) + " instead of " + share(d.now/d.offered) + "."
}

// share writes a share in a sentence.
func share(s float64) string {
	if s <= 0 {
		return "nothing"
	}
	return format.Share(s)
}
