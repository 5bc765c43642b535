package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"grl/limiter"
	"grl/limiter/law"
)

// mostBuckets bounds the buckets with gauges of their own: those offered most.
const mostBuckets = 2000

type metrics struct {
	reports    *prometheus.CounterVec // by outcome: folded, stale, malformed
	directives *prometheus.CounterVec // by outcome: taken, stale
	decide     prometheus.Histogram
	lost       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, c *Controller) metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_aggregators",
		Help: "Aggregators with a stream to this controller.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.node.count(false))
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_regions",
		Help: "Regional controllers with a stream to this controller.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.node.count(true))
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_epoch",
		Help: "Epoch of the directives.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.node.epoch)
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_config_revision",
		Help: "Active revision of the configuration.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.node.config.Revision)
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_limits_refused",
		Help: "1 while the limits directory holds a fault and the configuration before it stays active.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refused != "" {
			return 1
		}
		return 0
	})
	parentGauges(f, c)
	reg.MustRegister(bucketGauges{c})
	return metrics{
		reports: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_controller_reports_total",
			Help: "Reports received from children, by outcome.",
		}, []string{"outcome"}),
		directives: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_controller_directives_total",
			Help: "Directives received from the parent, by outcome.",
		}, []string{"outcome"}),
		decide: f.NewHistogram(prometheus.HistogramOpts{
			Name:                        "grl_controller_decide_seconds",
			Help:                        "Time to decide the cells whose load moved, or all of them at each period.",
			NativeHistogramBucketFactor: 1.1,
		}),
		lost: f.NewCounter(prometheus.CounterOpts{
			Name: "grl_controller_history_lost_minutes_total",
			Help: "Minutes of cells that could not be written to the history.",
		}),
	}
}

// parentGauges are the gauges of a regional controller; others show 0.
func parentGauges(f promauto.Factory, c *Controller) {
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_directive_age_seconds",
		Help: "Time since the last directive of the parent; 0 before the first.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r := c.node.region; r != nil && !r.heard.IsZero() {
			return time.Since(r.heard).Seconds()
		}
		return 0
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_controller_alone",
		Help: "1 while the parent is silent and this controller decides its part of global limits alone.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.node.alone() {
			return 1
		}
		return 0
	})
}

// bucketGauges are the gauges of the buckets that are offered most. A bucket
// with several cells shows the highest ratio among them.
type bucketGauges struct{ c *Controller }

var (
	ratioGauge = prometheus.NewDesc("grl_controller_drop_ratio",
		"Share of the offered load that hosts are told to drop, of the bucket's cell with the highest.", []string{"bucket"}, nil)
	limitGauge = prometheus.NewDesc("grl_controller_limit_requests_per_second",
		"Limit of the bucket.", []string{"bucket"}, nil)
	offeredGauge = prometheus.NewDesc("grl_controller_offered_requests_per_second",
		"Load offered to the bucket, over all its cells.", []string{"bucket"}, nil)
)

func (g bucketGauges) Describe(out chan<- *prometheus.Desc) {
	out <- ratioGauge
	out <- limitGauge
	out <- offeredGauge
}

// gauge is one bucket's figures.
type gauge struct {
	bucket         *limiter.Bucket
	offered, ratio float64
}

func (g bucketGauges) Collect(out chan<- prometheus.Metric) {
	for _, b := range g.highest() {
		name := b.bucket.FullName()
		out <- prometheus.MustNewConstMetric(ratioGauge, prometheus.GaugeValue, b.ratio, name)
		out <- prometheus.MustNewConstMetric(offeredGauge, prometheus.GaugeValue, b.offered, name)
		if !b.bucket.Block {
			out <- prometheus.MustNewConstMetric(limitGauge, prometheus.GaugeValue, b.bucket.LimitRPS, name)
		}
	}
}

func (g bucketGauges) highest() []*gauge {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	n := g.c.node
	byName := make(map[string]*gauge)
	n.cells.Each(func(i int, id limiter.CellID) {
		s := &n.states[i]
		b := byName[id.Bucket]
		if b == nil {
			b = &gauge{bucket: s.bucket}
			byName[id.Bucket] = b
		}
		b.offered += s.rate.Offered.RPS()
		b.ratio = max(b.ratio, law.Ratio(n.admit(i)))
		if s.bucket.Block {
			b.ratio = 1
		}
	})
	all := make([]*gauge, 0, len(byName))
	for _, b := range byName {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *gauge) int { return cmp.Compare(b.offered, a.offered) })
	return all[:min(len(all), mostBuckets)]
}
