package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store/ledger"
	"grl/web/page"
)

// ledgerView returns a view of an empty store and ledger.
func ledgerView(t testing.TB) view {
	v := recordedView(t, time.Now(), time.Now())
	v.ledger, v.node = ledger.New(v.opts.Store), newNode(time.Now(), nil)
	return v
}

// applyAt makes services the configuration.
func applyAt(t testing.TB, v view, at time.Time, author string, services ...limiter.Service) ledger.Revision {
	t.Helper()
	documents := make(map[string][]byte)
	for _, s := range services {
		documents[s.Name] = limitsfile.Normalize(s)
	}
	r, err := v.ledger.Apply(t.Context(), v.state.Head.Number, ledger.Change{
		Act: ledger.Act{Actor: author, At: at}, Action: "apply", Documents: documents,
	})
	if err != nil {
		t.Fatal(err)
	}
	v.state.Head = r
	return r
}

// randomBucket returns a bucket as it might be at a time.
func randomBucket(r *rand.Rand) limiter.Bucket {
	b := limiter.Bucket{Service: "pay", Name: "true", Scope: limiter.Region, LimitRPS: float64(1 + r.IntN(3)), Match: limiter.Match{Procedure: "GET /x"}}
	b.Behavior = limiter.Behavior(r.IntN(2))
	switch r.IntN(5) {
	case 0:
		b.LimitRPS, b.Block = 0, true
	case 1:
		b.Hourly = make([]float64, limiter.Hours)
		for i := range b.Hourly {
			b.Hourly[i] = 0.5 + float64(r.IntN(2))/2
		}
		b.TimeZone = []string{"", "Asia/Kathmandu"}[r.IntN(2)]
	case 2:
		b.Behavior, b.CandidateRPS = limiter.Deny, float64(1+r.IntN(2))
	case 3:
		b.Regions = map[string]float64{"eu": 7}
	}
	return b
}

// changeAt returns what a bucket's instance is held to.
func changeAt(b *limiter.Bucket, instance string, at time.Time) page.LimitChange {
	if b == nil {
		return page.LimitChange{}
	}
	held := b.At(at)
	c := page.LimitChange{CandidateRPS: held.CandidateRPS, Behavior: held.Behavior, Block: held.Block}
	if !held.Block {
		c.LimitRPS = held.Limit(instance)
	}
	return c
}

// TestLimitsFromRevisions compares the line with what was written down when each
// revision was made, at times at random.
func TestLimitsFromRevisions(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	v := ledgerView(t)
	now := time.Now().Truncate(time.Minute)
	type said struct {
		at       time.Time
		bucket   *limiter.Bucket
		revision ledger.Revision
	}
	var truth []said
	pay := limiter.Service{Name: "pay", Routes: []string{"GET /x"}, Buckets: []limiter.Bucket{{Service: "pay", Name: "aaa", LimitRPS: 1}, {Service: "pay", Name: "zzz", LimitRPS: 1}}}
	other := limiter.Service{Name: "other", Buckets: []limiter.Bucket{{Service: "other", Name: "true", LimitRPS: 1}}}
	for at := now.Add(-10 * 24 * time.Hour); at.Before(now); at = at.Add(time.Duration(1+r.IntN(10*60)) * time.Minute) {
		s := pay
		s.Buckets = slices.Clone(pay.Buckets)
		var b *limiter.Bucket
		if len(truth) > 0 && r.IntN(3) == 0 {
			b = truth[len(truth)-1].bucket // another one changes
			s.Buckets[r.IntN(2)].LimitRPS = float64(2 + r.IntN(1000))
		} else if r.IntN(6) > 0 {
			random := randomBucket(r)
			b = &random
		}
		if b != nil {
			s.Buckets = slices.Insert(s.Buckets, 1, *b)
		}
		other.Buckets[0].LimitRPS++
		truth = append(truth, said{at, b, applyAt(t, v, at, fmt.Sprint("person ", len(truth)), s, other)})
	}
	for _, instance := range []string{"eu", "us"} {
		for range 20 {
			since := now.Add(-time.Duration(r.Int64N(int64(10 * 24 * time.Hour)))).Add(time.Minute)
			line, err := v.Limits(t.Context(), "pay/true", instance, since)
			if err != nil || len(line) == 0 || line[0].At.After(since) {
				t.Fatalf("since %v: %+v, %v", since, line, err)
			}
			for range 200 {
				at := since.Add(time.Duration(r.Int64N(int64(now.Sub(since)))))
				held := truth[0]
				for _, s := range truth {
					if !s.at.After(at) {
						held = s
					}
				}
				var got page.LimitChange
				for _, c := range line {
					if !c.At.After(at) {
						got = c
					}
				}
				want := changeAt(held.bucket, instance, at)
				if got.At.After(since) {
					i := slices.IndexFunc(truth, func(s said) bool { return s.revision.Number == got.Revision })
					if i < 0 || truth[i].revision.Author != got.Author || truth[i].at.After(got.At) {
						t.Fatalf("%+v is of no revision", got)
					}
				} else if got.Revision != 0 || got.Author != "" {
					t.Fatalf("the first one is said to be of r%d", got.Revision)
				}
				got.At, got.Revision, got.Author = time.Time{}, 0, ""
				if got != want {
					t.Fatalf("%q at %v, since %v: %+v, want %+v of %+v", instance, at, since, got, want, held.bucket)
				}
			}
			for i := range line {
				if i > 0 && (line[i].At.Before(line[i-1].At) || line[i].LimitRPS == line[i-1].LimitRPS && line[i].CandidateRPS == line[i-1].CandidateRPS && line[i].Behavior == line[i-1].Behavior && line[i].Block == line[i-1].Block) {
					t.Fatalf("%+v after %+v", line[i], line[i-1])
				}
			}
		}
	}
	// What is kept is gone on with.
	before, err := v.Limits(t.Context(), "pay/true", "", now.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	b := limiter.Bucket{Service: "pay", Name: "true", LimitRPS: 99, Scope: limiter.Region, Match: limiter.Match{Procedure: "GET /x"}}
	pay.Buckets = append(pay.Buckets, b)
	last := applyAt(t, v, now, "ada", pay)
	after, err := v.Limits(t.Context(), "pay/true", "", now.Add(-time.Hour))
	if err != nil || len(after) != len(before)+1 || after[len(after)-1].LimitRPS != 99 || after[len(after)-1].Revision != last.Number {
		t.Errorf("after another revision: %+v, %v; before: %+v", after, err, before)
	}
}

// TestLimitsOfManyRevisions has more than are looked at.
func TestLimitsOfManyRevisions(t *testing.T) {
	v := ledgerView(t)
	now := time.Now().Truncate(time.Minute)
	const count = 700
	for i := range count {
		at := now.Add(-time.Duration(count-i) * time.Hour)
		applyAt(t, v, at, "rlc", limiter.Service{Name: "pay", Buckets: []limiter.Bucket{{Service: "pay", Name: "all", LimitRPS: float64(i + 1)}}})
	}
	since := now.Add(-(count - 50) * time.Hour)
	line, err := v.Limits(t.Context(), "pay/all", "", since)
	if err != nil || len(line) > mostVersions+1 || len(line) < mostVersions/2 {
		t.Fatalf("%d changes, %v", len(line), err)
	}
	if first := line[0].LimitRPS; first < 48 || first > 51 || !line[0].At.Equal(since) || line[len(line)-1].LimitRPS != count {
		t.Errorf("from %+v to %+v, want 51 or one of the few hours before, and all of them", line[0], line[len(line)-1])
	}
	for _, c := range line[1:] {
		if held := now.Sub(c.At).Hours(); int(held) != count+1-int(c.LimitRPS) {
			t.Errorf("%+v, which was made %v hours before", c, count+1-int(c.LimitRPS))
		}
	}
}

func TestLimitsOfACap(t *testing.T) {
	v := ledgerView(t)
	v.node.install(cascade(1, limiter.Cap{ID: "7", Service: "pay", LimitRPS: 10}), nil, nil)
	v.loaded = time.Now().Add(-time.Minute)
	line, err := v.Limits(t.Context(), "pay/_cap-7", "", time.Now().Add(-time.Hour))
	if err != nil || len(line) != 1 || line[0].LimitRPS != 10 || line[0].Behavior != limiter.Deny {
		t.Errorf("%+v, %v", line, err)
	}
	if _, err := v.Limits(t.Context(), "pay/p", "", time.Now().Add(time.Hour)); err == nil {
		t.Error("since a time to come: no error")
	}
}

// BenchmarkLimits reads five weeks of hourly revisions of one bucket among many
// for the first time.
func BenchmarkLimits(b *testing.B) {
	v := ledgerView(b)
	now := time.Now()
	services := make(map[string]limiter.Service)
	for i := range 1100 {
		s := limiter.Service{Name: fmt.Sprint("s", i)}
		for j := range 10 {
			s.Buckets = append(s.Buckets, limiter.Bucket{Service: s.Name, Name: fmt.Sprint("b", j), LimitRPS: 1})
		}
		services[s.Name] = s
	}
	for i := range 840 {
		for j := range 1100 {
			services[fmt.Sprint("s", j)].Buckets[i%10].LimitRPS = float64(i + 1)
		}
		applyAt(b, v, now.Add(-time.Duration(840-i)*time.Hour), "rlc", slices.Collect(maps.Values(services))...)
	}
	for _, span := range []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 34 * 24 * time.Hour} {
		b.Run(span.String(), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				v.limitLines.kept = nil
				if line, err := v.Limits(b.Context(), fmt.Sprintf("s%d/b1", i%1100), "", now.Add(-span)); err != nil || len(line) < 2 {
					b.Fatal(line, err)
				}
			}
		})
	}
}
