package limiter

import "sync/atomic"

// chunkWords is how many words of one shard a chunk holds: 8 KiB, so shards
// share no cache line, nor one that the processor fetches along with it.
const chunkWords = 1024

// arena hands out spans of counters, which have one word for each shard. The
// words of one shard lie densely side by side, and never move, so readers
// keep them. Its methods are not safe for concurrent use; the words are.
type arena struct {
	shards int // a power of two
	chunks []*chunk
	fresh  span           // what is left of the newest chunk
	free   map[int][]span // length → spans given back
}

// chunk is a block of words, all of shard 0 first.
type chunk struct {
	words  []atomic.Uint64
	stride int      // words of one shard
	mask   int      // number of shards - 1
	sums   []uint64 // over all shards, as of the last sum; owned by Collect
}

// span is n words of each shard, from offset on.
type span struct {
	chunk     *chunk
	offset, n int
}

func newArena(shards int) *arena {
	return &arena{shards: shards, free: map[int][]span{}}
}

// take returns a span of n words. They hold what a former owner left in them.
func (a *arena) take(n int) span {
	if list := a.free[n]; len(list) > 0 {
		a.free[n] = list[:len(list)-1]
		return list[len(list)-1]
	}
	if a.fresh.n < n {
		stride := max(chunkWords, n)
		c := &chunk{words: make([]atomic.Uint64, stride*a.shards), stride: stride, mask: a.shards - 1, sums: make([]uint64, stride)}
		a.chunks = append(a.chunks, c)
		a.fresh = span{chunk: c, n: stride}
	}
	s := span{chunk: a.fresh.chunk, offset: a.fresh.offset, n: n}
	a.fresh.offset += n
	a.fresh.n -= n
	return s
}

// give takes back a span that nobody writes to any more.
func (a *arena) give(s span) { a.free[s.n] = append(a.free[s.n], s) }

// words returns the span's words of shard 0; those of shard i begin i strides
// further on.
func (s span) words() []atomic.Uint64 {
	return s.chunk.words[s.offset : s.chunk.mask*s.chunk.stride+s.offset+s.n]
}

// sums returns the span's part of the sums that chunk.sum formed last.
func (s span) sums() []uint64 { return s.chunk.sums[s.offset : s.offset+s.n] }

// read stores the present sums over all shards in dst, of length n.
func (s span) read(dst []uint64) {
	clear(dst)
	words := s.words()
	for first := 0; first < len(words); first += s.chunk.stride {
		for i := range dst {
			dst[i] += words[first+i].Load()
		}
	}
}

// sum adds up all shards, one after the other as they lie in memory.
func (c *chunk) sum() {
	clear(c.sums)
	for first := 0; first < len(c.words); first += c.stride {
		shard := c.words[first : first+c.stride]
		for i := range c.sums {
			c.sums[i] += shard[i].Load()
		}
	}
}
