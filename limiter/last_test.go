package limiter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Names of requests, and patterns of buckets, which tell all of them apart.
var (
	lastNames    = []string{"a", "ab", "abc", "ac", "b", "bc", "c", UnknownCaller, "_under"}
	lastPatterns = []Pattern{"", "*", "a*", "ab*", "a", "ab", "b", "c", UnknownCaller, "_un*"}
)

// randomCascade returns a configuration of one service, and all requests to it.
func randomCascade(r *rand.Rand) (*Configuration, []Request) {
	c := &Configuration{Services: []Service{{Name: "s"}}}
	s := &c.Services[0]
	for i := range r.IntN(7) {
		b := Bucket{
			Service: "s", Name: fmt.Sprint("b", i), LimitRPS: 1, Behavior: Behavior(r.IntN(2)), Scope: Scope(r.IntN(3)),
			Match: Match{lastPatterns[r.IntN(len(lastPatterns))], lastPatterns[r.IntN(len(lastPatterns))]},
		}
		b.PerCaller, b.Verified = r.IntN(3) == 0, r.IntN(3) == 0
		s.Buckets = append(s.Buckets, b)
	}
	for i := range r.IntN(3) {
		c.Caps = append(c.Caps, Cap{
			ID: fmt.Sprint(i), Service: "s", LimitRPS: 1,
			Match: Match{lastPatterns[r.IntN(len(lastPatterns))], lastPatterns[r.IntN(len(lastPatterns))]},
		})
	}
	var requests []Request
	for _, caller := range lastNames {
		for _, procedure := range lastNames {
			for _, verified := range []bool{false, true} {
				requests = append(requests, Request{Service: "s", Caller: caller, Procedure: procedure, Verified: verified})
			}
		}
	}
	return c, requests
}

// TestLastAgainstAllRequests walks every kind of request: a bucket is last unless
// one after it is passed by all that pass it; and who adds up what the last ones
// admitted and all of them dropped counts no request too few.
func TestLastAgainstAllRequests(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	exact, all := 0, 0
	for range 500 {
		c, requests := randomCascade(r)
		last := c.Services[0].Last(c.Caps)
		order := make(map[string]int)
		m := newMatcher(&c.Services[0], c.Caps, "", "")
		for _, rule := range m.all {
			order[rule.id.Bucket] = rule.rank
		}
		passes := make(map[string]map[Request]bool)
		overlaps := false
		var counted, limited int
		for _, request := range requests {
			steps, _ := c.Walk(request, "", "")
			// Of those that a bucket drops, the ones after it hear nothing.
			drop := r.IntN(len(steps) + 4)
			if drop < len(steps) && steps[drop].Shadow {
				drop = len(steps)
			}
			ends := 0
			for i, s := range steps {
				name := s.Bucket.FullName()
				if passes[name] == nil {
					passes[name] = make(map[Request]bool)
				}
				passes[name][request] = true
				switch {
				case i == drop:
					counted++
				case i < drop && last[name]:
					counted++
				}
				if last[name] {
					ends++
				}
			}
			overlaps = overlaps || ends > 1
			if len(steps) == 0 {
				continue
			}
			limited++
			if !last[steps[len(steps)-1].Bucket.FullName()] {
				t.Fatalf("%+v ends at %s, which is not last: %+v", request, steps[len(steps)-1].Bucket.FullName(), c)
			}
		}
		if counted < limited || !overlaps && counted != limited {
			t.Fatalf("counts %d of %d requests, overlapping %v: %+v", counted, limited, overlaps, c)
		}
		for name, own := range passes {
			goesOn := false
			for later, theirs := range passes {
				if order[later] <= order[name] {
					continue
				}
				within := true
				for request := range own {
					within = within && theirs[request]
				}
				goesOn = goesOn || within
			}
			if last[name] == goesOn {
				t.Fatalf("%s is last: %v, want %v: %+v", name, last[name], !goesOn, c)
			}
		}
		all++
		if !overlaps {
			exact++
		}
	}
	if exact == 0 || exact == all {
		t.Errorf("%d of %d cascades count each request once: the test does not see both", exact, all)
	}
}

func TestLast(t *testing.T) {
	bucket := func(name string, caller, procedure Pattern) Bucket {
		return Bucket{Service: "s", Name: name, LimitRPS: 1, Match: Match{caller, procedure}}
	}
	each := bucket("each", "*", "")
	each.PerCaller = true
	tests := []struct {
		name    string
		buckets []Bucket
		caps    []Cap
		want    []string
	}{
		{"none", nil, nil, nil},
		{"one for all ends all", []Bucket{bucket("checkout", "checkout", "p/*"), bucket("p", "", "p/*"), bucket("all", "", "")}, nil, []string{"s/all"}},
		{"two procedures side by side", []Bucket{bucket("p", "", "p/*"), bucket("q", "", "q/*")}, nil, []string{"s/p", "s/q"}},
		{"a caller's and a procedure's share some", []Bucket{bucket("checkout", "checkout", ""), bucket("p", "", "p/*")}, nil, []string{"s/checkout", "s/p"}},
		{"of each caller, but not of those that say none", []Bucket{each, bucket("p", "*", "p/*")}, nil, []string{"s/each", "s/p"}},
		{"a cap before a bucket", []Bucket{bucket("all", "", "")}, []Cap{{ID: "1", Service: "s", Match: Match{Caller: "bot"}}}, []string{"s/all"}},
		{"a cap alone", nil, []Cap{{ID: "1", Service: "s", Match: Match{Caller: "bot"}}}, []string{"s/_cap-1"}},
		{"a procedure of any name", []Bucket{bucket("checkout", "checkout", ""), bucket("any", "", "*")}, nil, []string{"s/any"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Service{Name: "s", Buckets: tt.buckets}
			got := slices.Sorted(maps.Keys(s.Last(tt.caps)))
			if !slices.Equal(got, tt.want) {
				t.Errorf("Last() = %q, want %q", got, tt.want)
			}
		})
	}
}

// BenchmarkLast looks at 100,000 buckets of one service.
func BenchmarkLast(b *testing.B) {
	s := Service{Name: "s"}
	for i := range 100_000 {
		s.Buckets = append(s.Buckets, Bucket{Service: s.Name, Name: fmt.Sprint("b", i), LimitRPS: 1, Match: Match{Procedure: Pattern(fmt.Sprint("p", i))}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if last := s.Last(nil); len(last) != 100_000 {
			b.Fatalf("%d are last, want all", len(last))
		}
	}
}
