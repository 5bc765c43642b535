package limiter

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// index finds leaves by caller and procedure. Readers need no lock and see
// each leaf as soon as it is added; writers hold Limiter.mu. It is an open
// addressed table that is at most half full and never shrinks: growing and
// removing make a new one.
type index struct {
	slots []slot // length is a power of two
	seed  maphash.Seed
	used  int // guarded by Limiter.mu
}

// slot keeps the hash beside the leaf, so that a probe of a wrong slot costs
// no access to a leaf. A hash of 0 marks an empty slot.
type slot struct {
	hash atomic.Uint64
	leaf atomic.Pointer[leaf]
}

// minSlots is the size of the smallest index that has leaves.
const minSlots = 8

// newIndex returns an index with room for n leaves.
func newIndex(n int) *index {
	size := minSlots
	for size < 2*n {
		size *= 2
	}
	return &index{slots: make([]slot, size), seed: maphash.MakeSeed()}
}

// noIndex returns an index that stays empty: adding a leaf makes another one.
func noIndex() *index { return &index{slots: make([]slot, 1), seed: maphash.MakeSeed()} }

// hash is never 0. The rotation keeps (a, b) and (b, a) apart.
func (x *index) hash(caller, procedure string) uint64 {
	h := maphash.String(x.seed, caller) ^ bits.RotateLeft64(maphash.String(x.seed, procedure), 29)
	return h | 1
}

// find returns the leaf of that caller and procedure, nil if there is none.
func (x *index) find(caller, procedure string) *leaf {
	h := x.hash(caller, procedure)
	mask := uint64(len(x.slots) - 1)
	// The lowest bit is the same in all hashes.
	for i := h >> 1; ; i++ {
		s := &x.slots[i&mask]
		switch s.hash.Load() {
		case h:
			f := s.leaf.Load()
			if f.is(caller, procedure) {
				return f
			}
		case 0:
			return nil
		}
	}
}

// add puts f in and returns the index to use from now on, which is a larger
// one if x is half full.
func (x *index) add(f *leaf) *index {
	if 2*(x.used+1) > len(x.slots) {
		x = x.copy(2 * x.used)
	}
	x.put(f)
	return x
}

// live returns an index without the retired leaves of x.
func (x *index) live() *index {
	n := 0
	for i := range x.slots {
		if f := x.slots[i].leaf.Load(); f != nil && !f.retired.Load() {
			n++
		}
	}
	return x.copy(n)
}

// copy returns an index with room for n leaves, with those of x that are not
// retired; there are at most n.
func (x *index) copy(n int) *index {
	y := newIndex(n)
	for i := range x.slots {
		if f := x.slots[i].leaf.Load(); f != nil && !f.retired.Load() {
			y.put(f)
		}
	}
	return y
}

func (x *index) put(f *leaf) {
	h := x.hash(f.caller(), f.procedure())
	mask := uint64(len(x.slots) - 1)
	i := h >> 1
	for x.slots[i&mask].hash.Load() != 0 {
		i++
	}
	s := &x.slots[i&mask]
	// The hash publishes the slot: a reader that sees it finds the leaf.
	s.leaf.Store(f)
	s.hash.Store(h)
	x.used++
}
