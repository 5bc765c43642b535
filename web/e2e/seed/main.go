// Command seed fills a history and a directory of limits files with buckets that
// do not exist, for the browser tests and for who wants to see the dashboard with
// much in it. The history ends with the last whole hour, and the limits hold since
// it began; the controller must not run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store"
	"grl/store/ledger"
	"grl/store/storetest"
)

type options struct {
	db, limits       string // directories
	buckets, history int    // history: the first ones, with weeks of it
	weeks            int
	seed             uint64
	hostile          bool // names that break who prints them carelessly, too
	names            bool // prints those, and does nothing else
}

func main() {
	var o options
	flag.StringVar(&o.db, "db", "", "directory of the store, which is created; required")
	flag.StringVar(&o.limits, "limits", "", "directory for the limits files, which is created; required")
	flag.IntVar(&o.buckets, "buckets", 1000, "buckets in all")
	flag.IntVar(&o.history, "history", 100, "buckets with history")
	flag.IntVar(&o.weeks, "weeks", 5, "weeks of history")
	flag.Uint64Var(&o.seed, "seed", 1, "the same one makes the same history")
	flag.BoolVar(&o.hostile, "hostile", false, "add services, owners, buckets and callers of hostile names")
	flag.BoolVar(&o.names, "names", false, "print the hostile names as JSON, and do nothing else")
	flag.Parse()
	if err := o.run(context.Background(), time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, now time.Time) error {
	if o.names {
		return json.NewEncoder(os.Stdout).Encode(storetest.Hostile())
	}
	if o.db == "" || o.limits == "" || flag.NArg() > 0 {
		return errors.New("want -db and -limits, and nothing beside the flags")
	}
	if o.buckets < 1 || o.history < 0 || o.history > o.buckets || o.weeks < 1 {
		return errors.New("want at least one bucket and week, and no more buckets with history than there are")
	}
	var hostile []limiter.Service
	if o.hostile {
		hostile = hostileServices()
	}
	if o.buckets <= o.history+len(hostile) && o.hostile {
		return fmt.Errorf("want more than %d buckets, of which those of hostile names are", o.history+len(hostile))
	}
	services := append(o.services(now, o.buckets-len(hostile)), hostile...) // of those, each has one
	if err := writeLimits(o.limits, services); err != nil {
		return err
	}
	s, err := store.Open(ctx, o.db)
	if err != nil {
		return err
	}
	return errors.Join(o.fill(ctx, s, services, now), o.enact(ctx, s, services, now), s.Close())
}

// enact makes the limits files a revision of the time when the history begins, so
// that what is in shadow was judged for as long. A controller that then finds the
// same files has nothing to change.
func (o *options) enact(ctx context.Context, s *store.Store, services []limiter.Service, now time.Time) error {
	c := ledger.Change{
		Act:    ledger.Act{Actor: "seed", Reason: "limits of the seed", At: o.since(now)},
		Action: "apply", Documents: make(map[string][]byte),
	}
	for _, service := range services {
		c.Documents[service.Name] = limitsfile.Normalize(service)
	}
	_, err := ledger.New(s).Apply(ctx, 0, c)
	return err
}

// since is when the history begins.
func (o *options) since(now time.Time) time.Time {
	return now.Truncate(time.Hour).AddDate(0, 0, -7*o.weeks)
}

// services returns those of so many buckets: ten in one with history, as
// storetest.Cells names them, else a hundred. Their callers are all different,
// so that a request is counted in one bucket.
func (o *options) services(now time.Time, buckets int) []limiter.Service {
	shape, noon := storetest.DefaultShape(o.seed), workday(now).Add(15*time.Hour)
	var services []limiter.Service
	for i := 0; i < buckets; {
		s := limiter.Service{Name: fmt.Sprintf("service-%d", len(services)), Owner: fmt.Sprintf("team-%d", len(services)%40)}
		each := 100
		if i < o.history {
			each = 10
		}
		for j := 0; j < each && i < buckets; j++ {
			b := limiter.Bucket{
				Service: s.Name, Name: fmt.Sprintf("bucket-%d", j), LimitRPS: 300, Behavior: limiter.Deny,
				Match: limiter.Match{Caller: limiter.Pattern(fmt.Sprintf("caller-%d", j))},
			}
			if i < o.history {
				b.LimitRPS = math.Ceil(shape(i, noon) * share[j])
			}
			switch j % 10 {
			case 3, 8:
				b.Behavior = limiter.Allow
			case 2:
				b.CandidateRPS = math.Ceil(b.LimitRPS * 0.6)
			}
			s.Buckets = append(s.Buckets, b)
			i++
		}
		services = append(services, s)
	}
	return services
}

// share is the limit of a bucket with history in that of the load at noon: from
// one that drops each noon to one that is never near. Of the two in shadow, 3 and
// 8, one would hurt at noon.
var share = [10]float64{0.9, 1.1, 1.5, 4, 2, 0.9, 1.1, 1.5, 0.95, 2}

// workday returns the last Wednesday that is over.
func workday(now time.Time) time.Time {
	day := now.UTC().Truncate(24 * time.Hour)
	for day = day.AddDate(0, 0, -1); day.Weekday() != time.Wednesday; day = day.AddDate(0, 0, -1) {
	}
	return day
}

// permitted are the names that a limits file takes for a bucket and for an owner.
var permitted = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// hostileServices returns services whose names, owners and buckets are hostile,
// as far as a limits file takes them, and one with a bucket for each caller.
func hostileServices() []limiter.Service {
	each := limiter.Service{Name: hostileService, Owner: "team-hostile", Buckets: []limiter.Bucket{{
		Service: hostileService, Name: eachCaller, LimitRPS: 5, PerCaller: true, Behavior: limiter.Allow, Match: limiter.Match{Caller: "*"},
	}}}
	services := []limiter.Service{each}
	for _, name := range storetest.Hostile() {
		if permitted.MatchString(name) {
			b := limiter.Bucket{Service: name, Name: name, LimitRPS: 10, Match: limiter.Match{Caller: limiter.Pattern(name)}}
			services = append(services, limiter.Service{Name: name, Owner: name, Buckets: []limiter.Bucket{b}})
		}
	}
	return services
}

// The bucket of the callers with hostile names.
const (
	hostileService = "hostile"
	eachCaller     = "each-caller"
)

// zones are those of the fleet of the browser tests.
var zones = []string{"eu-1", "us-1"}

// fill writes the history.
func (o *options) fill(ctx context.Context, s *store.Store, services []limiter.Service, now time.Time) error {
	fill := storetest.FillOptions{Seed: o.seed, Cells: storetest.Cells(o.history), Zones: zones, Weeks: o.weeks, Until: now, Fleet: true}
	shape := storetest.DefaultShape(o.seed)
	named := (&limiter.Configuration{Services: services}).ByName()
	if o.hostile {
		for _, caller := range storetest.Hostile() {
			fill.Cells = append(fill.Cells, limiter.CellID{Bucket: hostileService + "/" + eachCaller, Caller: caller})
		}
	}
	var buckets []*limiter.Bucket
	for _, cell := range fill.Cells {
		buckets = append(buckets, named[cell.Bucket])
	}
	fill.Bucket = func(cell int) *limiter.Bucket { return buckets[cell] }
	fill.Shape = func(cell int, at time.Time) float64 {
		if cell >= o.history {
			return 1 + float64(cell%7)
		}
		return shape(cell, at)
	}
	if err := storetest.Fill(ctx, s, fill); err != nil {
		return err
	}
	return s.SawZones(ctx, []store.Zone{{Name: "eu-1", Region: "eu"}, {Name: "us-1", Region: "us"}}, now)
}

// writeLimits writes a file a service.
func writeLimits(dir string, services []limiter.Service) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i, s := range services {
		name := fmt.Sprintf("seed-%04d-%s.yaml", i, strings.ToLower(s.Name[:min(len(s.Name), 40)]))
		if err := os.WriteFile(filepath.Join(dir, name), limitsfile.Normalize(s), 0o600); err != nil {
			return err
		}
	}
	return nil
}
