package history_test

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/configurator/history"
	"grl/roles/controller/api"
	"grl/roles/rolestest"
	"grl/store"
	"grl/store/ledger"
	"grl/store/storetest"
)

// ownHistory returns the source of a controller that has a store, through its
// API.
func ownHistory(t testing.TB, s *store.Store) *history.Controller {
	t.Helper()
	mux := http.NewServeMux()
	for _, r := range api.New(api.Options{Ledger: ledger.New(s), History: s, Log: slog.New(slog.DiscardHandler)}).Routes() {
		mux.Handle(r.Path, r.Handler)
	}
	var network rolestest.Network
	network.Serve(t, "controller", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := access.Identity{Node: &access.Node{Role: access.Configurator}}
		mux.ServeHTTP(w, r.WithContext(access.With(r.Context(), id)))
	}))
	client := grlv1connect.NewConfiguratorServiceClient(network.Client(t), "http://controller", connect.WithGRPC(),
		connect.WithReadMaxBytes(64<<20), connect.WithAcceptCompression("gzip", nil, nil)) // packing takes longer than sending
	return history.NewController(func(ctx context.Context, call func(context.Context, grlv1connect.ConfiguratorServiceClient) error) error {
		return call(ctx, client)
	})
}

func openStore(t testing.TB) *store.Store {
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
	return s
}

// What a store holds comes through the API as it was written.
func TestControllerOfAStore(t *testing.T) {
	s := openStore(t)
	shape := func(cell int, at time.Time) float64 {
		return 50 * float64(cell+1) * (2 + math.Sin(float64(at.Unix())/86400*2*math.Pi))
	}
	err := storetest.Fill(t.Context(), s, storetest.FillOptions{
		Seed: 1, Weeks: 2, Until: night, Zones: []string{"a", "b"}, Shape: shape,
		Cells: []limiter.CellID{
			{Bucket: "s/b"}, {Bucket: "s/r", Instance: "eu"}, {Bucket: "s/r", Instance: "us"}, {Bucket: "other/b"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// A cap that comes to be after the buckets, and lasts an hour.
	err = storetest.Fill(t.Context(), s, storetest.FillOptions{
		Seed: 2, Weeks: 1, Until: night, Cells: []limiter.CellID{{Bucket: "s/_cap-1"}},
		Shape: func(_ int, at time.Time) float64 {
			if at.Before(night.Add(-12*time.Hour)) || at.After(night.Add(-11*time.Hour)) {
				return 0
			}
			return 5
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	q := want(limiter.Bucket{Name: "b"}, limiter.Bucket{Name: "r", Scope: limiter.Region}, limiter.Bucket{Name: "none"})
	q.Buckets = append(q.Buckets, history.Wanted{Bucket: limiter.Bucket{Service: "other", Name: "b"}})
	q.From, q.To = night.Add(-2*week), night
	got, err := collect(t, ownHistory(t, s), q)
	if err != nil || len(got) != 4 {
		t.Fatalf("%d buckets, %v; want 4", len(got), err)
	}
	tests := []struct {
		bucket string
		unit   int
		cell   int
		capped bool
	}{{"s/b", 0, 0, true}, {"s/r", 0, 1, true}, {"s/r", 1, 2, true}, {"other/b", 0, 3, false}}
	for _, tt := range tests {
		u := got[tt.bucket].Units[tt.unit]
		known, _ := count(u)
		unknown := 14*24*60 - known
		if u.Refused+u.NoLower != "" || tt.capped != (unknown > 0) || unknown > 180 {
			t.Errorf("%s %s: %d minutes unknown, refused %q, not lowered %q: %v", tt.bucket, u.Instance, unknown, u.Refused, u.NoLower, u.Notes)
		}
		sum, expected := 0.0, 0.0
		for i, rps := range u.Series.RPS {
			if rps == rps {
				sum += rps
				expected += shape(tt.cell, u.Series.Time(i))
			}
		}
		if math.Abs(sum/expected-1) > 0.01 {
			t.Errorf("%s %s: %v of what was expected", tt.bucket, u.Instance, sum/expected)
		}
		if u.SecondOverMinute < 1 || u.SecondOverMinute > 2 {
			t.Errorf("%s %s: second over minute = %v", tt.bucket, u.Instance, u.SecondOverMinute)
		}
	}
	if u := got["s/none"].Units[0]; u.Refused != "no_data" {
		t.Errorf("a bucket that never was is refused with %q", u.Refused)
	}
}

// BenchmarkController reads 500 buckets of five weeks through the API: a call of
// the ten that a cycle of 5,000 buckets makes.
func BenchmarkController(b *testing.B) {
	s := openStore(b)
	cells := storetest.Cells(500)
	if err := storetest.Fill(b.Context(), s, storetest.FillOptions{Seed: 1, Weeks: 5, Until: night, Cells: cells}); err != nil {
		b.Fatal(err)
	}
	q := history.Query{From: night.Add(-5 * week), To: night}
	for _, c := range cells {
		service, name, _ := strings.Cut(c.Bucket, "/")
		q.Buckets = append(q.Buckets, history.Wanted{Bucket: limiter.Bucket{Service: service, Name: name}})
	}
	source := ownHistory(b, s)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := source.Read(b.Context(), q, func(history.Bucket) error { n++; return nil }); err != nil || n != len(cells) {
			b.Fatalf("%d buckets, %v", n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*len(cells)), "ms/bucket")
}
