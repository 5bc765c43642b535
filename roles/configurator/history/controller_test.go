package history_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/configurator/history"
	"grl/roles/rolestest"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// night is when the cycle of these tests runs, a Monday.
var night = time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)

// past is a controller's history: what ReadHistory answers, message by message.
type past struct {
	grlv1connect.UnimplementedConfiguratorServiceHandler
	span  *grlv1.HistorySpan
	cells []*grlv1.CellHistory
	// breaks is how many streams break off after their third message.
	breaks int
	calls  int
}

func (p *past) ReadHistory(_ context.Context, r *grlv1.ReadHistoryRequest, stream *connect.ServerStream[grlv1.ReadHistoryResponse]) error {
	p.calls++
	if err := stream.Send(&grlv1.ReadHistoryResponse{Span: p.span}); err != nil {
		return err
	}
	sent := 0
	for _, c := range p.cells {
		if !c.Cap && !slices.Contains(r.Buckets, c.Bucket) {
			continue
		}
		if sent++; sent > 2 && p.breaks > 0 {
			p.breaks--
			return connect.NewError(connect.CodeUnavailable, errors.New("going away"))
		}
		if err := stream.Send(&grlv1.ReadHistoryResponse{Cell: c}); err != nil {
			return err
		}
	}
	return nil
}

// weeks returns a history of so many weeks before night in which all zones
// recorded something in each hour.
func weeks(n int, zones ...string) *past {
	hours := n * 7 * 24
	p := &past{span: &grlv1.HistorySpan{FromMs: night.Add(-time.Duration(hours) * time.Hour).UnixMilli(), Hours: uint32(hours), Zones: zones}}
	for range zones {
		p.span.Present = append(p.span.Present, slices.Repeat([]byte{0xff}, hours/8))
	}
	return p
}

// cell adds one that was offered the same in each minute, in zones by index.
func (p *past) cell(id limiter.CellID, perMinute uint64, zones ...int) *grlv1.CellHistory {
	hours := int(p.span.Hours)
	c := &grlv1.CellHistory{
		Bucket: id.Bucket, Instance: id.Instance, Caller: id.Caller, Cap: limiter.IsCap(id.Bucket),
		Offered: slices.Repeat([]uint64{perMinute}, hours*60),
	}
	for z := range p.span.Zones {
		rows := make([]byte, hours/8)
		if slices.Contains(zones, z) || zones == nil {
			rows = slices.Repeat([]byte{0xff}, hours/8)
		}
		c.Zones = append(c.Zones, rows)
	}
	p.cells = append(p.cells, c)
	return c
}

// absent takes hours away, of a zone's presence or of a cell's rows.
func absent(bits []byte, from, to int) {
	for h := from; h < to; h++ {
		bits[h/8] &^= 1 << (h % 8)
	}
}

// read asks the controller p for some buckets and returns what came, by name.
func read(t *testing.T, p *past, q history.Query) (map[string]history.Bucket, error) {
	t.Helper()
	var network rolestest.Network
	_, handler := grlv1connect.NewConfiguratorServiceHandler(p)
	network.Serve(t, "controller", handler)
	client := grlv1connect.NewConfiguratorServiceClient(network.Client(t), "http://controller", connect.WithGRPC())
	source := history.NewController(func(ctx context.Context, call func(context.Context, grlv1connect.ConfiguratorServiceClient) error) error {
		return call(ctx, client)
	})
	if q.To.IsZero() {
		q.From, q.To = time.UnixMilli(p.span.FromMs), night
	}
	return collect(t, source, q)
}

// collect reads, and fails if a bucket comes twice.
func collect(t *testing.T, source history.Source, q history.Query) (map[string]history.Bucket, error) {
	t.Helper()
	got := make(map[string]history.Bucket)
	err := source.Read(t.Context(), q, func(b history.Bucket) error {
		if _, twice := got[b.Name]; twice {
			t.Errorf("%s came twice", b.Name)
		}
		got[b.Name] = b
		return nil
	})
	return got, err
}

// want asks for buckets of one service s.
func want(buckets ...limiter.Bucket) history.Query {
	q := history.Query{}
	for _, b := range buckets {
		b.Service = "s"
		q.Buckets = append(q.Buckets, history.Wanted{Bucket: b})
	}
	return q
}

// count returns how many steps of a unit are known, and the highest of them.
func count(u history.Unit) (known int, highest float64) {
	for _, rps := range u.Series.RPS {
		if policy.Known(rps) {
			known++
			highest = max(highest, rps)
		}
	}
	return known, highest
}

func TestControllerUnits(t *testing.T) {
	id := func(instance, caller string) limiter.CellID {
		return limiter.CellID{Bucket: "s/b", Instance: instance, Caller: caller}
	}
	tests := []struct {
		name   string
		bucket limiter.Bucket
		cells  map[limiter.CellID]uint64 // requests a minute
		want   map[string]float64        // instance → rps
	}{
		{"global", limiter.Bucket{}, map[limiter.CellID]uint64{id("", ""): 600}, map[string]float64{"": 10}},
		{"a region each", limiter.Bucket{Scope: limiter.Region}, map[limiter.CellID]uint64{id("eu", ""): 600, id("us", ""): 60}, map[string]float64{"eu": 10, "us": 1}},
		{"the highest zone", limiter.Bucket{Scope: limiter.Zone}, map[limiter.CellID]uint64{id("a", ""): 600, id("b", ""): 660}, map[string]float64{"": 11}},
		{"the highest caller", limiter.Bucket{PerCaller: true}, map[limiter.CellID]uint64{id("", "web"): 120, id("", "app"): 60}, map[string]float64{"": 2}},
		{"the highest caller of a region", limiter.Bucket{PerCaller: true, Scope: limiter.Region}, map[limiter.CellID]uint64{id("eu", "web"): 120, id("eu", "app"): 60, id("us", "web"): 30}, map[string]float64{"eu": 2, "us": 0.5}},
		{"callers that share", limiter.Bucket{Share: limiter.MaxMin}, map[limiter.CellID]uint64{id("", "web"): 120, id("", "app"): 60}, map[string]float64{"": 3}},
		{"callers that share, the highest zone", limiter.Bucket{Share: limiter.MaxMin, Scope: limiter.Zone}, map[limiter.CellID]uint64{id("a", "web"): 120, id("a", "app"): 60, id("b", "web"): 150}, map[string]float64{"": 3}},
		{"a region without history", limiter.Bucket{Scope: limiter.Region, Regions: map[string]float64{"asia": 5}}, map[limiter.CellID]uint64{id("eu", ""): 600}, map[string]float64{"asia": 0, "eu": 10}},
		{"no history", limiter.Bucket{}, nil, map[string]float64{"": 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := weeks(1, "a", "b")
			for id, perMinute := range tt.cells {
				p.cell(id, perMinute)
			}
			tt.bucket.Name = "b"
			got, err := read(t, p, want(tt.bucket))
			if err != nil {
				t.Fatal(err)
			}
			b := got["s/b"]
			if len(b.Units) != len(tt.want) || b.Err != nil {
				t.Fatalf("%d units, %v: want %d", len(b.Units), b.Err, len(tt.want))
			}
			for _, u := range b.Units {
				known, highest := count(u)
				rps := tt.want[u.Instance]
				if math.Abs(highest-rps) > 1e-9 || (rps > 0) != (known == 7*24*60) || (rps == 0) != (u.Refused == "no_data") {
					t.Errorf("%q: %v rps, %d minutes known, refused %q; want %v", u.Instance, highest, known, u.Refused, rps)
				}
			}
		})
	}
}

// hour is the one of so many hours before night, counted from the span's start.
func (p *past) hour(before int) int { return int(p.span.Hours) - before }

func TestControllerHours(t *testing.T) {
	tests := []struct {
		name             string
		change           func(p *past, c *grlv1.CellHistory)
		unknown          int // minutes
		refused, noLower string
		note             string
	}{
		{"all is there", func(*past, *grlv1.CellHistory) {}, 0, "", "", ""},
		{"the controller was away for two hours", func(p *past, c *grlv1.CellHistory) {
			for _, present := range p.span.Present {
				absent(present, p.hour(50), p.hour(48))
			}
			clear(c.Offered[p.hour(50)*60 : p.hour(48)*60])
		}, 120, "", "partial", "120 of 40,320 steps are missing"},
		{"idle hours", func(p *past, c *grlv1.CellHistory) {
			for i := range c.Offered {
				if i/60%24 < 8 {
					c.Offered[i] = 0
				}
			}
		}, 0, "", "", ""},
		{"a zone was away for three hours", func(p *past, _ *grlv1.CellHistory) {
			absent(p.span.Present[1], p.hour(400), p.hour(397))
			absent(p.cells[0].Zones[1], p.hour(400), p.hour(397))
		}, 180, "", "partial", "lack a zone or region"},
		{"a zone was away that the bucket is seldom in", func(p *past, c *grlv1.CellHistory) {
			absent(p.span.Present[1], p.hour(400), p.hour(397))
			absent(c.Zones[1], 0, int(p.span.Hours))
		}, 0, "", "", ""},
		{"a zone has gone for good, three weeks ago", func(p *past, c *grlv1.CellHistory) {
			absent(p.span.Present[1], p.hour(500), p.hour(0))
			absent(c.Zones[1], p.hour(500), p.hour(0))
		}, 0, "", "", ""},
		{"a zone has gone, for a day now", func(p *past, c *grlv1.CellHistory) {
			absent(p.span.Present[1], p.hour(24), p.hour(0))
			absent(c.Zones[1], p.hour(24), p.hour(0))
		}, 24 * 60, "", "partial", "lack a zone or region"},
		{"idle while its zones were there", func(p *past, c *grlv1.CellHistory) {
			absent(c.Zones[0], p.hour(400), p.hour(397))
			absent(c.Zones[1], p.hour(400), p.hour(397))
		}, 0, "", "", ""},
		{"zeros where there must be requests", func(p *past, c *grlv1.CellHistory) {
			clear(c.Offered[p.hour(400)*60 : p.hour(397)*60])
		}, 180, "", "zero", "are 0 where requests were expected"},
		{"damaged", func(p *past, c *grlv1.CellHistory) { c.Damaged = []uint32{10, 11} }, 120, "", "damaged", "are damaged"},
		{"own drops yesterday", func(p *past, c *grlv1.CellHistory) {
			c.Dropped = make([]uint64, len(c.Offered))
			c.Dropped[p.hour(20)*60] = 3
		}, 1, "", "own_drops", "1 of 40,320 steps do not teach: grl dropped some of it"},
		{"own drops two weeks ago", func(p *past, c *grlv1.CellHistory) {
			c.Dropped = make([]uint64, p.hour(14*24)*60+5)
			c.Dropped[p.hour(14*24)*60] = 3
		}, 1, "", "", ""},
		{"a cap for an hour", func(p *past, _ *grlv1.CellHistory) {
			c := p.cell(limiter.CellID{Bucket: "s/_cap-1"}, 0)
			c.Offered[60], c.Offered[119] = 1, 1
			p.cells = []*grlv1.CellHistory{c, p.cells[0]}
		}, 60, "", "", "60 of 40,320 steps do not teach: a cap was on the service"},
		{"a cap on another service", func(p *past, _ *grlv1.CellHistory) {
			p.cells = []*grlv1.CellHistory{p.cell(limiter.CellID{Bucket: "other/_cap-1"}, 5), p.cells[0]}
		}, 0, "", "", ""},
		{"the last minutes are not written yet", func(p *past, c *grlv1.CellHistory) { clear(c.Offered[len(c.Offered)-3:]) }, 3, "", "", ""},
		{"its first request comes within a day", func(p *past, c *grlv1.CellHistory) {
			for i := range c.Offered {
				if i/60%24 < 20 {
					c.Offered[i] = 0
				}
			}
		}, 0, "", "", ""},
		{"the bucket is ten days old", func(p *past, c *grlv1.CellHistory) { clear(c.Offered[:18*24*60]) }, 18 * 24 * 60, "", "short_history", "there is history since 2026-11-20 02:00:00 UTC only"},
		{"the controller is ten days old", func(p *past, c *grlv1.CellHistory) {
			for _, present := range p.span.Present {
				absent(present, 0, 18*24)
			}
			clear(c.Offered[:18*24*60])
		}, 18 * 24 * 60, "", "short_history", ""},
		{"no zone was ever there", func(p *past, _ *grlv1.CellHistory) { p.span.Zones, p.span.Present, p.cells[0].Zones = nil, nil, nil }, 40320, "no_data", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := weeks(4, "a", "b")
			tt.change(p, p.cell(limiter.CellID{Bucket: "s/b"}, 600))
			q := want(limiter.Bucket{Name: "b"})
			q.Buckets[0].Least = 3 * week
			got, err := read(t, p, q)
			if err != nil {
				t.Fatal(err)
			}
			u := got["s/b"].Units[0]
			known, _ := count(u)
			if unknown := 4*7*24*60 - known; unknown != tt.unknown || u.Refused != tt.refused || u.NoLower != tt.noLower {
				t.Errorf("%d minutes unknown, refused %q, not lowered %q; want %d, %q, %q: %v", unknown, u.Refused, u.NoLower, tt.unknown, tt.refused, tt.noLower, u.Notes)
			}
			if notes := strings.Join(u.Notes, "; "); !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q in them", notes, tt.note)
			}
		})
	}
}

func TestControllerSecondOverMinute(t *testing.T) {
	tests := []struct {
		name     string
		lookBack time.Duration
		second   func(minute int) uint64 // of 600 requests in busy minutes, 60 in others
		want     float64
	}{
		{"not known", 0, func(int) uint64 { return 0 }, 0},
		{"even", 0, func(int) uint64 { return 10 }, 1},
		{"twice the mean", 0, func(int) uint64 { return 20 }, 2},
		{"below the mean counts as even", 0, func(int) uint64 { return 5 }, 1},
		{"what the policy does not look at does not count", 2 * day, func(minute int) uint64 {
			if minute < 5*24*60 {
				return 60
			}
			return 12
		}, 1.2},
		{"quiet minutes do not count", 0, func(minute int) uint64 {
			if minute%60 < 30 {
				return 15
			}
			return 50
		}, 1.5},
		{"a lone burst does not count", 0, func(minute int) uint64 {
			if minute == 60 {
				return 600
			}
			return 12
		}, 1.2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := weeks(1, "a")
			c := p.cell(limiter.CellID{Bucket: "s/b"}, 600)
			c.HighestSecond = make([]uint64, len(c.Offered))
			for i := range c.Offered {
				if i%60 >= 30 {
					c.Offered[i] = 60
				}
				c.HighestSecond[i] = tt.second(i)
			}
			q := want(limiter.Bucket{Name: "b"})
			q.Buckets[0].LookBack = tt.lookBack
			got, err := read(t, p, q)
			if err != nil {
				t.Fatal(err)
			}
			if f := got["s/b"].Units[0].SecondOverMinute; math.Abs(f-tt.want) > 1e-9 {
				t.Errorf("second over minute = %v, want %v", f, tt.want)
			}
		})
	}
}

// A stream that breaks off is asked for again, for the buckets that are left.
func TestControllerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := weeks(1, "a")
		var buckets []limiter.Bucket
		for i := range 5 {
			p.cell(limiter.CellID{Bucket: fmt.Sprint("s/b", i)}, 60)
			buckets = append(buckets, limiter.Bucket{Name: fmt.Sprint("b", i)})
		}
		p.breaks = 2
		got, err := read(t, p, want(buckets...))
		if err != nil || len(got) != 5 || p.calls != 3 {
			t.Errorf("%d buckets in %d calls, %v; want 5 in 3", len(got), p.calls, err)
		}
		p.breaks, p.calls = 9, 0
		if _, err = read(t, p, want(buckets...)); connect.CodeOf(err) != connect.CodeUnavailable || p.calls != 3 {
			t.Errorf("after %d calls %v, want unavailable after 3", p.calls, err)
		}
	})
}

func TestControllerHostileAnswers(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *past)
		text   string
	}{
		{"no span", func(p *past) { p.span = nil }, "does not begin with its span"},
		{"a span of other times", func(p *past) { p.span.FromMs += week.Milliseconds() }, "the span begins at"},
		{"a span not on the hour", func(p *past) { p.span.FromMs++ }, "want a whole hour"},
		{"a span that is too short", func(p *past) { p.span.Hours = 10 }, "the span ends at"},
		{"a span of all times", func(p *past) { p.span.Hours = math.MaxUint32 }, "4294967295 hours"},
		{"presence of no zones", func(p *past) { p.span.Zones = nil }, "0 zones and presence of 1"},
		{"too many minutes", func(p *past) { p.cells[0].Dropped = make([]uint64, 7*24*60+1) }, "more than the 10080 minutes"},
		{"too many zones", func(p *past) { p.cells[0].Zones = make([][]byte, 5) }, "rows of 5 zones"},
		{"a bucket in two places", func(p *past) {
			p.cells = append(p.cells, p.cell(limiter.CellID{Bucket: "s/c"}, 1), p.cells[0])
		}, "s/b was not asked for, or came twice"},
		{"a cap too late", func(p *past) { p.cell(limiter.CellID{Bucket: "s/_cap-1"}, 1) }, "the cap s/_cap-1 comes after buckets"},
		{"no cell", func(p *past) { p.cells = append(p.cells, &grlv1.CellHistory{Cap: true}) }, "comes after buckets"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := weeks(1, "a")
			p.cell(limiter.CellID{Bucket: "s/b"}, 60)
			q := want(limiter.Bucket{Name: "b"}, limiter.Bucket{Name: "c"})
			q.From, q.To = night.Add(-week), night
			tt.change(p)
			if _, err := read(t, p, q); err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("err = %v, want %q in it", err, tt.text)
			}
		})
	}
	t.Run("odd and harmless", func(t *testing.T) {
		p := weeks(1, "a")
		c := p.cell(limiter.CellID{Bucket: "s/b"}, math.MaxUint64)
		c.Damaged, c.Zones = []uint32{math.MaxUint32}, [][]byte{nil}
		p.cells = append(p.cells, &grlv1.CellHistory{Bucket: "s/c"})
		got, err := read(t, p, want(limiter.Bucket{Name: "b"}, limiter.Bucket{Name: "c"}))
		if err != nil || got["s/c"].Units[0].Refused != "no_data" {
			t.Errorf("%v, %v", got["s/c"], err)
		}
		if u := got["s/b"].Units[0]; u.Refused == "" {
			t.Errorf("a load of 1e17 rps is believed: %v", u.Notes)
		}
	})
}

func TestControllerStopsForTheReader(t *testing.T) {
	p := weeks(1, "a")
	p.cell(limiter.CellID{Bucket: "s/b"}, 60)
	p.cell(limiter.CellID{Bucket: "s/c"}, 60)
	var network rolestest.Network
	_, handler := grlv1connect.NewConfiguratorServiceHandler(p)
	network.Serve(t, "controller", handler)
	client := grlv1connect.NewConfiguratorServiceClient(network.Client(t), "http://controller")
	source := history.NewController(func(ctx context.Context, call func(context.Context, grlv1connect.ConfiguratorServiceClient) error) error {
		return call(ctx, client)
	})
	q := want(limiter.Bucket{Name: "b"}, limiter.Bucket{Name: "c"})
	q.From, q.To = night.Add(-week), night
	enough, calls := errors.New("enough"), 0
	err := source.Read(t.Context(), q, func(history.Bucket) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%v after %d buckets, want the reader's error after 1", err, calls)
	}
}
