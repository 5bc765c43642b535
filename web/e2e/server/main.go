// Command server serves the dashboard with a generated fleet, for the browser
// tests and for looking at pages while working on them:
//
//	go run ./web/e2e/server -listen 127.0.0.1:7070 -buckets 480
//
// Every number is computed from the seed and the time since the start.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"grl/limiter"
	"grl/web"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	buckets := flag.Int("buckets", 480, "rows of the buckets table")
	seed := flag.Uint64("seed", 1, "seed of the generated fleet")
	store := flag.String("people", "", "directory of a store with accounts; empty: nobody signs in")
	flag.Parse()

	l, err := net.Listen("tcp", *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	handler, err := pages(web.Options{Backend: newFleet(*seed, *buckets), Log: log, Version: "v0.1.0-generated"}, *store)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintln(os.Stderr, srv.Serve(l))
	os.Exit(1)
}

// fleet is a web.Backend whose loads swing around what the seed gave them.
type fleet struct {
	start   time.Time
	buckets []web.Bucket
}

// hostile are names that must not break a row.
var hostile = []string{
	`<script>document.title="x"</script>`,
	`"><img src=x onerror=alert(1)>`,
	"a\u202eb\u2066c",
	"Ze\u0301\u0323\u0317\u0335\u0316algo\u030d\u030e\u0304",
	"a-very-long-name-that-goes-on-and-on-without-any-place-to-break-it-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"line\nbreak\ttab\x00nul",
	"عربي-خدمة",
}

func newFleet(seed uint64, n int) *fleet {
	r := rand.New(rand.NewPCG(seed, 0))
	services := []string{"payments", "search", "checkout", "catalog", "identity", "ledger", "notify"}
	rules := []struct{ name, match string }{
		{"writes", "payments.v1.Charges/*"},
		{"checkout-charge", "checkout → payments.v1.Charges/Create"},
		{"bulk-read", "exporter → catalog.v1.Items/List"},
		{"suggest", "web → search.v2.Suggest/Query"},
		{"login", "* per caller → POST /login"},
		{"everything", "*"},
	}
	f := &fleet{start: time.Now()}
	for i := range n {
		rule := rules[r.IntN(len(rules))]
		b := web.Bucket{
			Service:  services[r.IntN(len(services))],
			Name:     fmt.Sprintf("%s-%d", rule.name, i),
			Match:    rule.match,
			Behavior: limiter.Deny,
			LimitRPS: math.Pow(10, r.Float64()*5),
			Hosts:    1 + r.IntN(4000),
			Silent:   i%97 == 5,
			Block:    i%83 == 7,
		}
		b.Owner = "team-" + b.Service
		b.OfferedRPS = b.LimitRPS * (0.2 + 0.9*math.Pow(r.Float64(), 2))
		if i%9 == 0 {
			b.Behavior = limiter.Allow
			b.OfferedRPS *= 1.4
		}
		if i%7 == 3 {
			b.Scope, b.Instance = limiter.Region, []string{"eu", "us", "ap"}[r.IntN(3)]
		}
		if rule.name == "login" {
			b.Caller = []string{"web", "app", "price-bot"}[r.IntN(3)]
		}
		if i < len(hostile) {
			b.Service, b.Name, b.Caller, b.Match, b.Owner = hostile[i], hostile[i], hostile[i], hostile[i], hostile[i]
			b.OfferedRPS = b.LimitRPS * 3
		}
		f.buckets = append(f.buckets, b)
	}
	return f
}

// Buckets returns all rows with the loads of this moment.
func (f *fleet) Buckets() []web.Bucket {
	t := time.Since(f.start).Seconds()
	rows := make([]web.Bucket, len(f.buckets))
	for i, b := range f.buckets {
		b.OfferedRPS *= 1 + 0.03*math.Sin(t/3+float64(i))
		over := max(0, b.OfferedRPS-b.LimitRPS)
		switch {
		case b.Behavior == limiter.Allow:
			b.ShadowDroppedRPS = over
		case b.Block:
			b.LimitRPS, b.DroppedRPS = 0, b.OfferedRPS
		default:
			b.DroppedRPS = over
		}
		b.AdmittedRPS = b.OfferedRPS - b.DroppedRPS
		b.Ratio = b.DroppedRPS / b.OfferedRPS
		rows[i] = b
	}
	return rows
}

// Fleet returns a tree with one zone cut off and one node that refused a
// revision.
func (f *fleet) Fleet() web.Fleet {
	age := func(i int) time.Duration {
		return time.Duration(math.Abs(math.Sin(time.Since(f.start).Seconds()+float64(i))) * float64(900*time.Millisecond))
	}
	since := uint64(time.Since(f.start).Seconds() * 1e6)
	fl := web.Fleet{
		Epoch: 12, Revision: 1482, Loaded: f.start.Add(-3 * time.Hour),
		LoadError: "payments.yaml:12:5: bucket \"payments/writes\": limit missing\n" +
			"search.yaml:3:1: unknown field \"burst\"; not supported yet",
		Controller: web.Node{
			Role: "controller", Name: "global-1", Version: "v0.1.0", Revision: 1482,
			Hosts: 98_412, BytesReceived: 61_000_000 + since, BytesSent: 38_000_000 + since/2,
		},
		SilentZones: []string{"eu-2"},
	}
	for i := range 12 {
		region := []string{"eu", "us", "ap"}[i%3]
		n := web.Node{
			Role: "aggregator", Name: fmt.Sprintf("aggregator-%d", i), Zone: fmt.Sprintf("%s-%d", region, 1+i/3), Region: region,
			Version: "v0.1.0", Revision: 1482, Hosts: 4000 + 71*i, ReportAge: age(i), DirectiveAge: age(i + 40),
			BytesReceived: 3_900_000 + since/12, BytesSent: 2_200_000 + since/24,
		}
		switch {
		case n.Zone == "eu-2":
			n.Revision, n.ReportAge, n.DirectiveAge = 1481, 12*time.Second+time.Since(f.start), 13*time.Second+time.Since(f.start)
		case i == 7:
			n.Revision, n.RefusedRevision, n.RefusedReason = 1466, 1482, "bucket payments/writes: unknown field candidate"
		}
		fl.Nodes = append(fl.Nodes, n)
	}
	return fl
}
