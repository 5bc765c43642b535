package limiter

// build finds the steps of a new leaf and gives it counters; l.mu is held.
func (l *Limiter) build(f *leaf, verified bool) {
	t := f.table
	f.exempt = t.matcher.exempts(f.class[0], f.class[1])
	if !f.exempt {
		l.addSteps(f, t.matcher.match(f.class[0], f.class[1], verified), verified)
	}
	n := len(f.steps) + 1
	if f.costed {
		n *= 2
	}
	f.span = l.counts.take(n)
	f.counts = f.span.words()
	f.stride, f.mask = uint32(f.span.chunk.stride), uint32(l.counts.shards-1)
	// The words may hold what a former leaf counted.
	sums := make([]uint64, 2*n)
	f.collected, f.detailed = sums[:n:n], sums[n:]
	f.span.read(f.collected)
	copy(f.detailed, f.collected)
	f.usedAt = l.now
}

func (l *Limiter) addSteps(f *leaf, rules []*rule, verified bool) {
	f.steps = f.inline[:0]
	if len(rules) > len(f.inline) {
		f.steps = make([]step, 0, len(rules))
	}
	for _, r := range rules {
		caller, _ := f.names()
		if r.bucket.Verified && !verified {
			caller = UnknownCaller
		}
		c := l.cell(f.table.callee, r, caller)
		l.adopt(c)
		shadow := r.bucket.Behavior == Allow
		f.steps = append(f.steps, step{ratio: c.ratio, cell: c, bucket: r.bucket, shadow: shadow})
		f.enforced = f.enforced || !shadow
		f.costed = f.costed || r.bucket.Cost.Header != ""
	}
}
