package configurator

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	cycles   *prometheus.CounterVec // by outcome: done, failed
	duration prometheus.Histogram
	last     prometheus.Gauge
	results  *prometheus.CounterVec // by outcome
	refusals *prometheus.CounterVec // by reason: a word of policy.Refusals
	syncs    *prometheus.CounterVec // by outcome: done, failed
}

func newMetrics(reg prometheus.Registerer, c *Configurator) metrics {
	f := promauto.With(reg)
	status := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return value()
		})
	}
	status("grl_configurator_leads", "1 if this configurator is at work, 0 if another one is.", func() float64 {
		if c.told.GetLeads() {
			return 1
		}
		return 0
	})
	status("grl_configurator_cycle_buckets", "Buckets of the cycle under way; 0 between cycles.", func() float64 { return float64(c.status.GetBuckets()) })
	status("grl_configurator_cycle_done_buckets", "Buckets of the cycle under way that are computed.", func() float64 { return float64(c.status.GetDone()) })
	status("grl_configurator_repository_in_step", "1 if the limits repository is in step with the controller or there is none, 0 if not.", func() float64 {
		if c.status.GetRepositoryProblem() != "" {
			return 0
		}
		return 1
	})
	return metrics{
		cycles: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_configurator_cycles_total",
			Help: "Cycles, by outcome.",
		}, []string{"outcome"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name:                        "grl_configurator_cycle_duration_seconds",
			Help:                        "How long cycles took.",
			NativeHistogramBucketFactor: 1.1,
		}),
		last: f.NewGauge(prometheus.GaugeOpts{
			Name: "grl_configurator_last_cycle_timestamp_seconds",
			Help: "When a cycle last came to its end.",
		}),
		results: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_configurator_results_total",
			Help: "Buckets computed, by outcome.",
		}, []string{"outcome"}),
		refusals: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_configurator_refusals_total",
			Help: "Buckets whose limit was left since their history is not fit, by reason.",
		}, []string{"reason"}),
		syncs: f.NewCounterVec(prometheus.CounterOpts{
			Name: "grl_configurator_repository_syncs_total",
			Help: "Times that limits repository and controller were brought into step, by outcome.",
		}, []string{"outcome"}),
	}
}
