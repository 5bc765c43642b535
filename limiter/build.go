package limiter

// build finds the steps of a new leaf and gives it counters; l.mu is held.
func (l *Limiter) build(f *leaf, v variant) {
	t := f.table
	f.retry = v.retry
	f.exempt = t.matcher.exempts(f.class[0], f.class[1])
	if !f.exempt {
		l.addSteps(f, t.matcher.match(f.class[0], f.class[1], v.verified), v)
	}
	n := f.span().n
	place := l.counts.take(n)
	f.chunk, f.offset = place.chunk, uint32(place.offset)
	// The words may hold what a former leaf counted.
	sums := make([]uint64, 2*n)
	f.collected, f.detailed = sums[:n:n], sums[n:]
	place.read(f.collected)
	copy(f.detailed, f.collected)
	f.usedAt = l.now
}

func (l *Limiter) addSteps(f *leaf, rules []*rule, v variant) {
	f.steps = f.inline[:0]
	if len(rules) > len(f.inline) {
		f.steps = make([]step, 0, len(rules))
	}
	for _, r := range rules {
		counted, _ := f.counted()
		caller, class := f.table.matcher.passes(r, counted, f.class[0], v)
		c := l.cell(f.table.callee, r, caller, class)
		l.adopt(c)
		shadow := r.bucket.Behavior == Allow || f.table.disabled
		f.steps = append(f.steps, step{ratio: c.ratio, cell: c, bucket: r.bucket, shadow: shadow, coherent: r.bucket.Coherent, class: uint8(class)})
		f.enforced = f.enforced || !shadow
		f.costed = f.costed || r.bucket.Cost.Header != ""
	}
}
