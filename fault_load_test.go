package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	judged  = time.Second            // span that a rate is taken over
	step    = 100 * time.Millisecond // between the beginnings of two of them
	steady  = 3 * time.Second        // what holds for so long holds
	quarter = 0.25                   // share of the limit that the admitted rate may be off
)

// A load sends requests to the sidecars at a fixed rate, whatever the answers
// are and however long they take.
type load struct {
	t     *testing.T
	rate  atomic.Uint64 // bits of the requests per second over all sidecars
	lanes []lane

	mu      sync.Mutex
	answers []answer
}

// A lane is the connections to one sidecar, or straight to the upstream.
type lane struct {
	url    string
	direct bool
	client *http.Client
}

// An answer is what came of one request.
type answer struct {
	sent   time.Time
	took   time.Duration
	lane   int
	status int
	err    error
}

// load begins to send rps requests a second over all sidecars, evenly, until
// the test ends or stop is called. One lane more leads straight to the upstream,
// to compare with.
func (f *fleet) load(rps float64) (l *load, stop func()) {
	l = &load{t: f.t}
	l.set(rps)
	for _, m := range f.sidecars {
		l.lanes = append(l.lanes, newLane("http://"+m.listen, false))
	}
	l.lanes = append(l.lanes, newLane(f.upstream.URL, true))
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	for i := range l.lanes {
		running.Go(func() { l.run(ctx, i) })
	}
	stop = func() {
		cancel()
		running.Wait()
		for i := range l.lanes {
			l.lanes[i].client.CloseIdleConnections()
		}
	}
	f.t.Cleanup(stop)
	return l, stop
}

func newLane(url string, direct bool) lane {
	return lane{url + "/v1/orders", direct, &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second},
		Timeout:   5 * time.Second,
	}}
}

// set changes the rate, in requests per second over all sidecars.
func (l *load) set(rps float64) { l.rate.Store(math.Float64bits(rps)) }

func (l *load) run(ctx context.Context, i int) {
	var sending sync.WaitGroup
	defer sending.Wait()
	sidecars := float64(len(l.lanes) - 1)
	wait := time.NewTimer(0)
	defer wait.Stop()
	first := time.Now()
	for next := first.Add(time.Duration(i) * time.Millisecond); ; {
		wait.Reset(time.Until(next))
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		sending.Go(func() { l.send(i) })
		next = next.Add(time.Duration(sidecars / math.Float64frombits(l.rate.Load()) * float64(time.Second)))
	}
}

// send sends one request. It is a POST, which the client never sends twice, so
// that a failure shows.
func (l *load) send(i int) {
	a := answer{sent: time.Now(), lane: i}
	request, err := http.NewRequest(http.MethodPost, l.lanes[i].url, http.NoBody)
	if err != nil {
		l.t.Error(err)
		return
	}
	request.Header.Set("rpc-caller", "web")
	if l.lanes[i].direct {
		request.Header.Set("direct", "yes")
	}
	response, err := l.lanes[i].client.Do(request)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		a.status = response.StatusCode
	}
	a.err, a.took = err, time.Since(a.sent)
	l.mu.Lock()
	l.answers = append(l.answers, a)
	l.mu.Unlock()
}

// through returns the answers that sidecars gave to what was sent in [from, to).
func (l *load) through(from, to time.Time) []answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []answer
	for _, a := range l.answers {
		if !l.lanes[a.lane].direct && !a.sent.Before(from) && a.sent.Before(to) {
			found = append(found, a)
		}
	}
	return found
}

// count returns how many answers have the status.
func count(answers []answer, status int) int {
	n := 0
	for _, a := range answers {
		if a.status == status && a.err == nil {
			n++
		}
	}
	return n
}

// settled returns how long after since the admitted rate began to stay near
// limit, as seen until now.
func (l *load) settled(since, now time.Time, limit float64) time.Duration {
	answers := l.through(since, now)
	off := time.Duration(0)
	for at := time.Duration(0); !since.Add(at + judged).After(now); at += step {
		n := 0
		for _, a := range answers {
			if after := a.sent.Sub(since); a.status == http.StatusOK && after >= at && after < at+judged {
				n++
			}
		}
		if math.Abs(float64(n)/judged.Seconds()-limit) > quarter*limit {
			off = at + step
		}
	}
	return off
}

// holds waits until the admitted rate has stayed near limit for a while, and
// returns how long after since that began. It fails the test if that is not
// within the bound, with the slack of a machine that has other things to do.
func (l *load) holds(what string, since time.Time, limit float64, bound time.Duration) time.Duration {
	l.t.Helper()
	again := time.NewTicker(step)
	defer again.Stop()
	for range again.C {
		now := time.Now().Add(-2 * step) // what is under way is not yet counted
		settled := l.settled(since, now, limit)
		if now.Sub(since)-settled >= steady {
			return settled
		}
		if settled > slack(bound) {
			break
		}
	}
	l.t.Fatalf("%s: admitted is not within %v %% of %v rps, %v later:\n%s", what, quarter*100, limit, time.Since(since), l.history(since))
	return 0
}

// history is what was admitted and dropped in each second since.
func (l *load) history(since time.Time) string {
	var text []byte
	for from := since; from.Before(time.Now()); from = from.Add(time.Second) {
		answers := l.through(from, from.Add(time.Second))
		text = fmt.Appendf(text, "%v: admitted %d, dropped %d of %d\n", from.Sub(since), count(answers, http.StatusOK), count(answers, http.StatusTooManyRequests), len(answers))
	}
	return string(text)
}

// unhurt fails the test for each request sent since then that was neither
// admitted nor dropped; those to an excused lane (-1: none) may fail until then.
func (l *load) unhurt(what string, since time.Time, excused int, until time.Time) {
	l.t.Helper()
	failed := 0
	for _, a := range l.through(since, time.Now()) {
		good := a.err == nil && (a.status == http.StatusOK || a.status == http.StatusTooManyRequests)
		if good || a.lane == excused && a.sent.Before(until) {
			continue
		}
		if failed++; failed <= 5 {
			l.t.Errorf("%s: request to sidecar %d, %v later: status %d, %v", what, a.lane, a.sent.Sub(since), a.status, a.err)
		}
	}
	if failed > 5 {
		l.t.Errorf("%s: %d requests failed", what, failed)
	}
}

// quantile returns the quantile of how long the admitted requests of a span
// took, straight to the upstream or through the sidecars.
func (l *load) quantile(direct bool, from, to time.Time, q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var took []time.Duration
	for _, a := range l.answers {
		if l.lanes[a.lane].direct == direct && a.status == http.StatusOK && !a.sent.Before(from) && a.sent.Before(to) {
			took = append(took, a.took)
		}
	}
	if len(took) == 0 {
		l.t.Fatal("no request was admitted")
	}
	slices.Sort(took)
	return took[int(q*float64(len(took)-1))]
}
