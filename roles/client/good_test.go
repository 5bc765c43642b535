package client

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// nobody is a network in which no aggregator answers.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody answers")
}

// process is one life of a client whose aggregators are silent but for what the
// test says in their place.
type process struct {
	t        *testing.T
	client   *Client
	limiter  *limiter.Limiter
	registry *prometheus.Registry
	stop     func()
}

func begin(t *testing.T, dir string, log slog.Handler) *process {
	t.Helper()
	config := Default()
	config.Service, config.StateDir = "pay", dir
	p := &process{t: t, limiter: limiter.New(limiter.Options{Zone: config.Zone, Region: config.Region}), registry: prometheus.NewRegistry()}
	var err error
	p.client, err = New(Options{
		Config: config, Limiter: p.limiter, Log: slog.New(log), Registry: p.registry,
		HTTP: &http.Client{Transport: nobody{}}, Node: "h1",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.client.Run(ctx) }()
	p.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return p
}

// say has an aggregator send a configuration.
func (p *process) say(m *grlv1.Configuration) {
	p.t.Helper()
	if err := p.client.take(p.t.Context(), &grlv1.JoinResponse{Message: &grlv1.JoinResponse_Configuration{Configuration: m}}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) revision() uint64 {
	p.client.mu.Lock()
	defer p.client.mu.Unlock()
	return p.client.state.config.Revision
}

// live runs a life of that length, in which an aggregator sends a configuration,
// and returns the revision it began with.
func live(t *testing.T, dir string, d time.Duration, m *grlv1.Configuration) uint64 {
	t.Helper()
	p := begin(t, dir, slog.DiscardHandler)
	began := p.revision()
	if m != nil {
		p.say(m)
	}
	time.Sleep(d)
	p.stop()
	return began
}

// A configuration that had not served for a minute when the process ended is not
// begun with; the last one that had is.
func TestBeginsWithTheLastGoodConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for i, step := range []struct {
			last  time.Duration
			says  *grlv1.Configuration
			began uint64
		}{
			{62 * time.Second, configuration(1, 1), 0},
			{50 * time.Second, configuration(2, 1), 1},
			{time.Second, nil, 1},
			{62 * time.Second, configuration(3, 1), 1},
			{time.Second, configuration(4, 1), 3},
			{time.Second, nil, 3},
		} {
			if began := live(t, dir, step.last, step.says); began != step.began {
				t.Errorf("life %d began with r%d, want r%d", i+1, began, step.began)
			}
		}
	})
}

// A cap survives restarts while nobody answers, and ends when it should.
func TestACapSurvivesRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := configuration(1, 1)
		m.Serial, m.Caps = 1, []*grlv1.Cap{wire.FromCap(&limiter.Cap{ID: "1", Service: "pay", Block: true, Ends: time.Now().Add(time.Hour)})}
		live(t, dir, 62*time.Second, m)
		time.Sleep(30 * time.Minute)

		p := begin(t, dir, slog.DiscardHandler)
		drops := func(what string, want, tolerance int) {
			t.Helper()
			dropped := 0
			for range 1000 {
				if p.limiter.Service("pay").Decide("web", "p0").Dropped {
					dropped++
				}
			}
			if dropped < want-tolerance || dropped > want+tolerance {
				t.Errorf("%s: %d of 1000 dropped, want %d", what, dropped, want)
			}
		}
		drops("at once after a restart", 1000, 0)
		time.Sleep(29*time.Minute - 2*time.Second - time.Second)
		drops("just before its end", 1000, 0)
		time.Sleep(time.Second + 30*time.Second)
		drops("30 s after its end", 960, 10)
		time.Sleep(2 * time.Minute)
		drops("when it has ramped out", 0, 0)
		p.stop()
	})
}
