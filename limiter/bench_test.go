package limiter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
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

// run measures decide, called with the index of a pair, serial and parallel.
func run(b *testing.B, list []pair, decide func(int) bool) {
	order := walk(list)
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			decide(int(order[i&(len(order)-1)]))
			i++
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		var start atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			i := int(start.Add(1)) * 4001
			for pb.Next() {
				decide(int(order[i&(len(order)-1)]))
				i++
			}
		})
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
