package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

const (
	// deadline is how long one query may take.
	deadline = 30 * time.Second
	// maxAnswer bounds the answer to one query, in bytes, unpacked.
	maxAnswer = 32 << 20
	// pointsAtOnce is how many steps one query asks for: a week of minutes.
	// Prometheus answers 11,000 at most.
	pointsAtOnce = 7 * 24 * 60
	// batchSize is how many buckets one query asks for: so many in three regions
	// stay below maxAnswer. What does not is asked for again in halves.
	batchSize = 20
	// uningested is how many steps before the end may not be there yet.
	uningested = 5
	// failedBatches is after how many batches in a row the source is given up.
	failedBatches = 2
)

// PrometheusOptions says where a server is and how it is asked.
type PrometheusOptions struct {
	// URL is what /api/v1/query_range follows.
	URL string
	// TokenFile holds a bearer token, and is read for each query; empty: none.
	TokenFile string
	// Tenant is sent as X-Scope-OrgID; empty: it is not.
	Tenant string
	// Step is how far apart values are asked for; 0: a minute. It should not be
	// shorter than the scrape interval, for each is a rate over two steps.
	Step time.Duration
	// Transport carries the requests; nil: one of its own.
	Transport http.RoundTripper
}

// Prometheus reads what clients export from a server that answers as Prometheus
// does: also Thanos, Mimir and VictoriaMetrics.
type Prometheus struct {
	api  prometheus.API
	step time.Duration
}

// NewPrometheus returns the source. It asks nothing yet.
func NewPrometheus(o PrometheusOptions) (*Prometheus, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("history source %q is no URL like http://127.0.0.1:9090", o.URL)
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	client, err := api.NewClient(api.Config{Address: o.URL, Client: &http.Client{
		Transport:     &transport{next: o.Transport, tokenFile: o.TokenFile, tenant: o.Tenant},
		CheckRedirect: checkRedirect,
	}})
	if err != nil {
		return nil, fmt.Errorf("history source: %w", err)
	}
	return &Prometheus{api: prometheus.NewAPI(client), step: cmp.Or(o.Step, time.Minute)}, nil
}

// Name implements Source.
func (*Prometheus) Name() string { return "prometheus" }

// Read implements Source. The source as a whole has failed when nothing could be
// read of the first buckets, or of two batches in a row.
func (p *Prometheus) Read(ctx context.Context, q Query, fn func(Bucket) error) error {
	q.From, q.To = q.From.Truncate(p.step), q.To.Truncate(p.step)
	if !q.From.Before(q.To) {
		return fmt.Errorf("read history: from %v to %v is less than a step of %v", q.From, q.To, p.step)
	}
	r := promReader{Prometheus: p, query: q}
	failed, read := 0, false
	for batch := range batches(q.Buckets) {
		err := r.read(ctx, batch)
		if err == nil {
			failed, read = 0, true
		} else if failed++; !read || failed == failedBatches || ctx.Err() != nil || errors.Is(err, errRefused) {
			return fmt.Errorf("read history: %w", err)
		}
		for _, b := range batch.buckets {
			b.err = cmp.Or(b.err, err)
			if err := fn(b.bucket(q, p.step)); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch is buckets that are asked for in the same way.
type batch struct {
	kind    kind
	buckets []*promBucket
}

// batches cuts buckets into batches, those of one service together.
func batches(wanted []Wanted) func(yield func(batch) bool) {
	byKind := make(map[kind][]*promBucket)
	for i := range wanted {
		b := &promBucket{wanted: &wanted[i], parts: make(map[string]*lane)}
		byKind[b.kind()] = append(byKind[b.kind()], b)
	}
	var all []batch
	for kind, buckets := range byKind {
		slices.SortFunc(buckets, func(a, b *promBucket) int { return cmp.Compare(a.name(), b.name()) })
		for some := range slices.Chunk(buckets, batchSize) {
			all = append(all, batch{kind, some})
		}
	}
	slices.SortFunc(all, func(a, b batch) int { return cmp.Compare(a.buckets[0].name(), b.buckets[0].name()) })
	return slices.Values(all)
}
