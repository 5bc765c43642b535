package aggregator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	reports    *prometheus.CounterVec // by outcome: folded, stale, malformed
	directives *prometheus.CounterVec // by outcome: taken, stale
	fold       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, a *Aggregator) metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_aggregator_hosts",
		Help: "Clients with a stream to this aggregator.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return float64(len(a.node.hosts))
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_aggregator_cells",
		Help: "Cells with traffic or a directive.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return float64(a.node.cells.Count())
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_aggregator_config_revision",
		Help: "Revision of the configuration held.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return float64(a.node.config.Revision)
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_aggregator_directive_age_seconds",
		Help: "Time since the last directive, of the decider silent for longest; 0 before the first.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		age := 0.0
		for _, d := range a.node.deciders {
			if d.heard.IsZero() {
				continue // not since the start
			}
			age = max(age, time.Since(d.heard).Seconds())
		}
		return age
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_aggregator_silent_deciders",
		Help: "Deciders that are silent, in whose place this aggregator decides.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		alone := 0
		for _, d := range a.node.deciders {
			if d.alone {
				alone++
			}
		}
		return float64(alone)
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "grl_aggregator_outliers",
		Help: "Clients that claim more of some cell than is plausible.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return float64(a.node.countOutliers())
	})
	return metrics{
		reports: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_aggregator_reports_total",
			Help: "Reports received from clients, by outcome.",
		}, []string{"outcome"}),
		directives: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_aggregator_directives_total",
			Help: "Directives received from controllers, by outcome.",
		}, []string{"outcome"}),
		fold: f.NewHistogram(prometheus.HistogramOpts{
			Name:                        "grl_aggregator_fold_seconds",
			Help:                        "Time from a report's receipt to the zone sum that contains it.",
			NativeHistogramBucketFactor: 1.1,
		}),
	}
}
