package limiter

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// maxShards bounds the memory of counters on machines with very many cores;
// beyond it processors share.
const maxShards = 64

// shardCount returns how many shards counters have: one for each processor
// that Go uses now, rounded up to a power of two.
func shardCount() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	return n
}

// procPin and procUnpin are on the runtime's list of names that stay linkable,
// golang/go#67401.

//go:linkname procPin runtime.procPin
//go:noescape
func procPin() int

//go:linkname procUnpin runtime.procUnpin
//go:noescape
func procUnpin()

// processor returns the number of the processor that runs the caller. It may
// run on another one by the time it uses the number, so what is counted there
// is still added atomically; the number only keeps cache lines apart.
func processor() int {
	p := procPin()
	procUnpin()
	return p
}
