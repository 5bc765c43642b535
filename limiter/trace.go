package limiter

import (
	"encoding/binary"
	"math/rand/v2"
)

// TraceDraw returns the draw of a journey for Coin.FlipTrace, uniform in
// [0, One): the same for all its requests, at all hops, while salt is the same.
// Trace ids may be of any kind, even counted; what depends on the salt is
// which journeys draw low.
// Source: docs/concepts.md, "Coherent drops".
func TraceDraw(salt uint64, trace [16]byte) uint64 {
	h := mix(salt + 0x9e3779b97f4a7c15)
	h = mix(h ^ binary.BigEndian.Uint64(trace[:8]))
	h = mix(h ^ binary.BigEndian.Uint64(trace[8:]))
	return h >> 32
}

// mix is the finaliser of splitmix64, a bijection whose every output bit
// depends on every input bit.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SetSalt sets the salt of coherent draws, 0 at first. Hops whose limiters
// have the same one drop the same journeys; a new one makes others be dropped.
func (l *Limiter) SetSalt(salt uint64) { l.salt.Store(salt) }

// draw returns the draw of a request for a coherent bucket. One without a
// trace, nil or zero, is a journey of its own.
func (l *Limiter) draw(trace *[16]byte) uint64 {
	if trace == nil || *trace == [16]byte{} {
		return rand.Uint64() >> 32
	}
	return TraceDraw(l.salt.Load(), *trace)
}
