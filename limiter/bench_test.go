//go:build unix

package limiter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// pair is a key of the floor, and a request of the benchmarks.
type pair struct{ caller, procedure string }

func pairs(n int) []pair {
	list := make([]pair, n)
	for i := range list {
		list[i] = pair{fmt.Sprintf("caller-%d", i%100), fmt.Sprintf("shop.v1.Orders/Method%d", i/100)}
	}
	return list
}

// loaded returns a limiter with a bucket of its own for each pair, at ratio,
// that has seen each.
func loaded(b *testing.B, list []pair, ratio float64) *Limiter {
	b.Helper()
	l := New(Options{})
	s := Service{Name: "orders"}
	for i, p := range list {
		s.Buckets = append(s.Buckets, Bucket{
			Name: fmt.Sprint(i), Match: Match{Pattern(p.caller), Pattern(p.procedure)}, LimitRPS: 100, Behavior: Deny,
		})
	}
	if err := l.Install(Configuration{Services: []Service{s}}); err != nil {
		b.Fatal(err)
	}
	for c := range l.Cells() {
		c.SetRatio(ratio)
	}
	for _, p := range list {
		l.Service("orders").Decide(p.caller, p.procedure)
	}
	return l
}

// walk is an order in which to take the requests: all at random for many.
func walk(list []pair) []uint16 {
	r := rand.New(rand.NewPCG(1, 2))
	order := make([]uint16, 1<<14)
	for i := range order {
		order[i] = uint16(r.IntN(len(list)))
	}
	return order
}

// cpu returns the processor time that the process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU reports the processor time of an operation since start, which says
// more than wall time where others use the machine. In parallel, the wall time
// on idle processors is this divided by their number.
func reportCPU(b *testing.B, start time.Duration) {
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
}

// run measures decide, called with the index of a pair, serial and parallel.
func run(b *testing.B, list []pair, decide func(int) bool) {
	order := walk(list)
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		i, start := 0, cpu(b)
		for b.Loop() {
			decide(int(order[i&(len(order)-1)]))
			i++
		}
		reportCPU(b, start)
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		var goroutines atomic.Int64
		start := cpu(b)
		b.RunParallel(func(pb *testing.PB) {
			i := int(goroutines.Add(1)) * 4001
			for pb.Next() {
				decide(int(order[i&(len(order)-1)]))
				i++
			}
		})
		reportCPU(b, start)
	})
}

var sizes = []int{1, 10_000}

// BenchmarkFloor is the least a decision can cost: a map and an atomic add. To
// be read beside the others of the same run.
func BenchmarkFloor(b *testing.B) {
	for _, n := range sizes {
		list := pairs(n)
		m := make(map[pair]*atomic.Uint64, n)
		for _, p := range list {
			// A request's names are never the very bytes of the key.
			m[pair{strings.Clone(p.caller), strings.Clone(p.procedure)}] = new(atomic.Uint64)
		}
		b.Run(fmt.Sprintf("cells=%d", n), func(b *testing.B) {
			run(b, list, func(i int) bool { return m[list[i]].Add(1) == 0 })
		})
	}
}

func benchmarkDecide(b *testing.B, prepare func(l *Limiter, list []pair) func(int) bool) {
	for _, n := range sizes {
		for _, ratio := range []float64{0, 0.05} {
			b.Run(fmt.Sprintf("cells=%d/ratio=%v", n, ratio), func(b *testing.B) {
				list := pairs(n)
				run(b, list, prepare(loaded(b, list, ratio), list))
			})
		}
	}
}

func BenchmarkDecideNames(b *testing.B) {
	benchmarkDecide(b, func(l *Limiter, list []pair) func(int) bool {
		s := l.Service("orders")
		return func(i int) bool { return s.Decide(list[i].caller, list[i].procedure).Dropped }
	})
}

func BenchmarkDecideHandle(b *testing.B) {
	benchmarkDecide(b, func(l *Limiter, list []pair) func(int) bool {
		handles := make([]*Handle, len(list))
		for i, p := range list {
			handles[i] = l.Handle("orders", p.caller, p.procedure)
			handles[i].Decide()
		}
		return func(i int) bool { return handles[i].Decide().Dropped }
	})
}

func BenchmarkDecideRequest(b *testing.B) {
	benchmarkDecide(b, func(l *Limiter, list []pair) func(int) bool {
		return func(i int) bool {
			return l.Decide(Request{Service: "orders", Caller: list[i].caller, Procedure: list[i].procedure}).Dropped
		}
	})
}

// BenchmarkDecideClasses is a retry of a tier by header, in a coherent bucket.
func BenchmarkDecideClasses(b *testing.B) {
	for _, ratio := range []float64{0, 0.05} {
		b.Run(fmt.Sprintf("ratio=%v", ratio), func(b *testing.B) {
			l := New(Options{})
			all := tiered("all")
			all.ShedRetriesFirst, all.Coherent = true, true
			if err := l.Install(Configuration{Services: []Service{{Name: "orders", Buckets: []Bucket{all}}}}); err != nil {
				b.Fatal(err)
			}
			for c := range l.Cells() {
				c.SetRatio(ratio)
			}
			s := l.Service("orders")
			run(b, pairs(100), func(i int) bool {
				return s.DecideRequest(Request{Caller: "web", Procedure: "shop.v1.Orders/Get", Attempt: 1, Tier: 3, TraceID: trace(1, uint64(i))}).Dropped
			})
		})
	}
}

// BenchmarkDecideOverflow is a caller beyond the bound on names.
func BenchmarkDecideOverflow(b *testing.B) {
	l := New(Options{MaxNames: 10})
	each := Bucket{Name: "each", Match: Match{Caller: "*"}, PerCaller: true, LimitRPS: 100, Behavior: Deny}
	batch := Bucket{Name: "batch", Match: Match{Caller: "batch-*"}, LimitRPS: 100, Behavior: Deny}
	if err := l.Install(Configuration{Services: []Service{{Name: "orders", Buckets: []Bucket{each, batch}}}}); err != nil {
		b.Fatal(err)
	}
	s := l.Service("orders")
	list := make([]pair, 1000)
	for i := range list {
		list[i] = pair{fmt.Sprintf("stranger-%d", i), "shop.v1.Orders/Get"}
		s.Decide(list[i].caller, list[i].procedure)
	}
	run(b, list, func(i int) bool { return s.Decide(list[i].caller, list[i].procedure).Dropped })
}

// BenchmarkInstall swaps between two configurations of 10,000 buckets.
func BenchmarkInstall(b *testing.B) {
	list := pairs(10_000)
	l := loaded(b, list, 0)
	var configurations [2]Configuration
	for i := range configurations {
		s := *l.Service("orders").Configuration().clone()
		s.Owner = fmt.Sprint(i)
		configurations[i] = Configuration{Services: []Service{s}}
	}
	i := 0
	for b.Loop() {
		if err := l.Install(configurations[i%2]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkCollect reads the counters of 10,000 leaves of which all moved.
func BenchmarkCollect(b *testing.B) {
	list := pairs(10_000)
	l := loaded(b, list, 0)
	s := l.Service("orders")
	for b.Loop() {
		b.StopTimer()
		for _, p := range list {
			s.Decide(p.caller, p.procedure)
		}
		b.StartTimer()
		l.Collect(time.Unix(0, 0))
	}
}
