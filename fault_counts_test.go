package main

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/uplink"
)

// TestFaultKeepsCounts kills and hangs aggregators under load. The history has
// each request, whichever aggregators its host reported to. What a lost one had
// passed on but not yet confirmed to its hosts, two periods at most, is counted
// twice.
func TestFaultKeepsCounts(t *testing.T) {
	f := newFleet(t, faultLimit, []zoneSize{{2, 3}, {1, 3}})
	began := time.Now()
	l, stop := f.load(calm)
	l.holds("start", began, faultLimit, back)
	pair, single := f.aggregators[0], f.aggregators[2]

	single.kill()
	single.restart()
	pause(steady)
	pair.kill() // its hosts move
	pause(steady)
	pair.restart()
	f.aggregators[1].signal(syscall.SIGSTOP) // its hosts move back
	pause(5 * time.Second)
	f.aggregators[1].signal(syscall.SIGCONT)
	pause(steady)
	// Alone in its zone: its hosts dial it again and again, and those streams wait.
	single.signal(syscall.SIGSTOP)
	pause(15 * time.Second)
	single.signal(syscall.SIGCONT)
	pause(steady)
	stop()
	pause(2 * steady) // all is reported

	f.controller.signal(syscall.SIGTERM) // writes the history
	if code := f.controller.code(); code != 0 {
		t.Fatalf("controller ended with %d, want 0", code)
	}
	f.controller.restart()
	offered, dropped := f.recorded(t, began)
	answers := l.through(began, time.Now())
	l.unhurt("aggregators lost", began, -1, began)
	const lost, zoneRate = 4, calm / 2
	twice := float64(offered) - float64(len(answers))
	report(t, "counted twice for each aggregator lost", twice/lost/zoneRate, 2, "seconds of its load")
	if twice < 0 || twice > lost*2*zoneRate {
		t.Errorf("%d requests were sent, the history has %d", len(answers), offered)
	}
	refused := count(answers, http.StatusTooManyRequests)
	if more := float64(dropped) - float64(refused); more < 0 || more > lost*2*zoneRate {
		t.Errorf("%d requests were dropped, the history has %d", refused, dropped)
	}
}

// recorded returns what the controller's history has since then.
func (f *fleet) recorded(t *testing.T, since time.Time) (offered, dropped uint64) {
	t.Helper()
	httpClient := uplink.HTTPClient()
	defer httpClient.CloseIdleConnections()
	history, err := grlv1connect.NewViewServiceClient(httpClient, "http://"+f.controller.control).GetHistory(t.Context(), &grlv1.GetHistoryRequest{
		Bucket: "shop/everything",
		FromMs: since.Truncate(time.Minute).UnixMilli(),
		ToMs:   time.Now().Add(time.Minute).UnixMilli(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range history.Minutes {
		offered += m.Offered
		dropped += m.Dropped
	}
	return offered, dropped
}
