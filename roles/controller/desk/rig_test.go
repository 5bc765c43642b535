package desk_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy"
	"grl/policy/guard"
	"grl/proto/access"
	"grl/roles/controller/desk"
	"grl/store"
	"grl/store/ledger"
)

// town is a fleet without hosts: what is offered is what the test says.
type town struct {
	mu      sync.Mutex // guards all below
	now     map[string]float64
	history map[string][]guard.Cell
	zones   []string
	regions [][]string // nil: all zones are of one
	stuck   bool       // installs nothing any more
	broken  bool       // has no history to read
	reads   int        // of histories
}

func (w *town) Offered(service string, m limiter.Match) (float64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rps, ok := w.now[service+" "+string(m.Caller)+" "+string(m.Procedure)]
	return rps, ok
}

func (w *town) History(_ context.Context, bucket string, from, to time.Time) ([]guard.Cell, error) {
	if to.Sub(from) < 6*24*time.Hour {
		return nil, errors.New("not a week")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.broken {
		return nil, errors.New("disk")
	}
	return w.history[bucket], nil
}

func (w *town) Cap(string, string) desk.CapLoad {
	return desk.CapLoad{OfferedRPS: 100, DroppedRPS: 40, Holding: 3, Clients: 4}
}

func (w *town) Zones() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.zones
}

func (w *town) Regions() [][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.regions == nil {
		return [][]string{w.zones}
	}
	return w.regions
}

func (w *town) Active(ctx context.Context, _, _ uint64) error {
	w.mu.Lock()
	stuck := w.stuck
	w.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// flat is a week of a constant rate, of which these minutes stand out.
func flat(rps float64, others ...float64) []guard.Cell {
	c := guard.Cell{}
	for i := range 7 * 24 * 60 {
		m := guard.Minute{Start: int64(i), Offered: rps}
		if i < len(others) {
			m.Offered = others[i]
		}
		c.Minutes = append(c.Minutes, m)
	}
	return []guard.Cell{c}
}

type rig struct {
	testing.TB
	*desk.Desk
	ledger *ledger.Ledger
	town   *town
}

func newRig(t testing.TB) *rig {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{TB: t, ledger: ledger.New(s), town: &town{now: map[string]float64{}, history: map[string][]guard.Cell{}, zones: []string{"a"}}}
	r.Desk = r.another()
	return r
}

// another returns a desk of another controller on the same ledger.
func (r *rig) another() *desk.Desk {
	return desk.New(desk.Options{Ledger: r.ledger, Traffic: r.town, Log: slog.New(slog.DiscardHandler)})
}

var (
	admin  = desk.By{Person: access.Person{Name: "ada", Level: access.Admin}, From: "127.0.0.1", RequestID: "q1"}
	editor = desk.By{Person: access.Person{Name: "ed", Level: access.Editor, Services: []string{"payments"}, Owners: []string{"team-search"}}}
	viewer = desk.By{Person: access.Person{Name: "vi", Level: access.Viewer}}
)

// file returns a limits file of a service: its name, and buckets as name=rps,
// of which a rps with ~ in front is in shadow.
func file(service string, buckets ...string) limitsfile.Source {
	var b strings.Builder
	b.WriteString("service: " + service + "\nowner: team-" + service + "\n")
	if len(buckets) > 0 {
		b.WriteString("buckets:\n")
	}
	for _, bucket := range buckets {
		name, rps, _ := strings.Cut(bucket, "=")
		behavior := "deny"
		if shadow, ok := strings.CutPrefix(rps, "~"); ok {
			rps, behavior = shadow, "allow"
		}
		b.WriteString("  - {name: " + name + ", match: {caller: " + name + "}, limit: {rps: " + rps + "}, behavior: " + behavior + "}\n")
	}
	return limitsfile.Source{Name: service + ".yaml", Data: []byte(b.String())}
}

func (r *rig) apply(files ...limitsfile.Source) desk.Outcome {
	r.Helper()
	return r.must(r.Apply(r.Context(), desk.ApplyRequest{By: admin, Files: files}))
}

func (r *rig) must(out desk.Outcome, err error) desk.Outcome {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// limits returns the limits of the head: name=rps of each bucket.
func (r *rig) limits() string {
	r.Helper()
	head, err := r.ledger.Head(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	documents, err := r.ledger.Documents(r.Context(), head.Number)
	if err != nil {
		r.Fatal(err)
	}
	var sources []limitsfile.Source
	for name, text := range documents {
		sources = append(sources, limitsfile.Source{Name: name, Data: text})
	}
	services, err := limitsfile.Load(sources)
	if err != nil {
		r.Fatal(err)
	}
	var parts []string
	for _, s := range services {
		for _, b := range s.Buckets {
			shadow := ""
			if b.Behavior == limiter.Allow {
				shadow = "~"
			}
			parts = append(parts, b.FullName()+"="+shadow+policy.Rate(b.LimitRPS))
		}
	}
	return strings.Join(parts, " ")
}

func (r *rig) wantLimits(want string) {
	r.Helper()
	if got := r.limits(); got != want {
		r.Errorf("limits are %q, want %q", got, want)
	}
}

// want fails unless err is of the type, and returns it.
func want[E error](t testing.TB, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want a %T", err, e)
	}
	return e
}
