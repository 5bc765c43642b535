package limiter

import (
	"runtime"
	"sync"
	"testing"
)

// TestMoreProcessorsThanShards: GOMAXPROCS may grow after the counters were
// laid out.
func TestMoreProcessorsThanShards(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}})
	runtime.GOMAXPROCS(8)
	const goroutines, each = 16, 2000
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() { send(l, each, "a", "x") })
	}
	all.Wait()
	l.Collect(at(0))
	wantCounts(t, l, "b", "", Counts{Offered: goroutines * each})
}
