package client

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
)

// mostCallers bounds the callers of a per-caller bucket that have series of
// their own; the others share limiter.Other.
const mostCallers = 50

// allCaps is the name under which all caps of a service count.
const allCaps = "_cap"

// totals are the requests by service, bucket, caller and decision, for as long
// as the process lives: cells come and go, counters must not fall.
type totals struct {
	counts  map[series]*limiter.Counts
	callers map[string]int // bucket → callers with series of their own
}

type series struct{ service, bucket, caller string }

func newTotals() totals {
	return totals{counts: make(map[series]*limiter.Counts), callers: make(map[string]int)}
}

// add takes in what a cell counted. b is nil for a bucket that is no more.
func (t *totals) add(b *limiter.Bucket, id limiter.CellID, more limiter.Counts) {
	if b == nil {
		return
	}
	key := series{b.Service, id.Bucket, id.Caller}
	if b.Cap != nil {
		// Each cap has a new name: as labels they would have no bound.
		key.bucket = b.Service + "/" + allCaps
	}
	if t.counts[key] == nil && id.Caller != "" && id.Caller != limiter.Other {
		if t.callers[id.Bucket] == mostCallers {
			key.caller = limiter.Other
		} else {
			t.callers[id.Bucket]++
		}
	}
	c := t.counts[key]
	if c == nil {
		c = &limiter.Counts{}
		t.counts[key] = c
	}
	c.Offered += more.Offered
	c.Dropped += more.Dropped
	c.ShadowDropped += more.ShadowDropped
}

// collector shows the client's state as metrics.
type collector struct{ c *Client }

var (
	requestsDesc = prometheus.NewDesc("grl_client_requests_total",
		"Requests that reached a bucket, by decision; caller is set on buckets with a cell for each caller.",
		[]string{"service", "bucket", "caller", "decision"}, nil)
	unlimitedDesc = prometheus.NewDesc("grl_client_unlimited_requests_total",
		"Requests that no bucket limited, by reason.", []string{"service", "reason"}, nil)
	retriesDesc = prometheus.NewDesc("grl_client_retries_total",
		"Requests that were no first attempts, whatever was decided of them.", []string{"service"}, nil)
	reportsDesc = prometheus.NewDesc("grl_client_reports_total",
		"Reports sent: one each period, and sudden ones of rates that could not wait.", []string{"kind"}, nil)
	directivesDesc = prometheus.NewDesc("grl_client_directives_total",
		"Directives taken.", nil, nil)
	ageDesc = prometheus.NewDesc("grl_client_directive_age_seconds",
		"Time since the last directive of a decider.", []string{"decider"}, nil)
	answeredDesc = prometheus.NewDesc("grl_client_aggregator_answers",
		"1 while an aggregator has the client's stream and answers on it.", nil, nil)
	disabledDesc = prometheus.NewDesc("grl_client_disabled",
		"1 while dropping is stopped for a service, or for all, by the configuration or the switch file.", nil, nil)
	revisionDesc = prometheus.NewDesc("grl_client_config_revision",
		"Revision of the configuration held.", nil, nil)
)

func registerMetrics(reg prometheus.Registerer, c *Client) { reg.MustRegister(collector{c}) }

func (m collector) Describe(out chan<- *prometheus.Desc) {
	out <- requestsDesc
	out <- unlimitedDesc
	out <- retriesDesc
	out <- reportsDesc
	out <- directivesDesc
	out <- ageDesc
	out <- revisionDesc
	out <- answeredDesc
	out <- disabledDesc
}

func (m collector) Collect(out chan<- prometheus.Metric) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	s := &m.c.state
	for key, n := range s.totals.counts {
		for decision, count := range map[string]uint64{
			"admitted":       n.Offered - n.Dropped - n.ShadowDropped,
			"dropped":        n.Dropped,
			"shadow_dropped": n.ShadowDropped,
		} {
			out <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(count),
				key.service, key.bucket, key.caller, decision)
		}
	}
	for key, n := range s.limiter.Unlimited() {
		out <- prometheus.MustNewConstMetric(unlimitedDesc, prometheus.CounterValue, float64(n), key.Service, key.Reason)
	}
	for service, n := range s.limiter.Retries() {
		out <- prometheus.MustNewConstMetric(retriesDesc, prometheus.CounterValue, float64(n), service)
	}
	out <- prometheus.MustNewConstMetric(reportsDesc, prometheus.CounterValue, float64(s.traffic.periodic), "period")
	out <- prometheus.MustNewConstMetric(reportsDesc, prometheus.CounterValue, float64(s.traffic.sudden), "sudden")
	out <- prometheus.MustNewConstMetric(directivesDesc, prometheus.CounterValue, float64(s.traffic.directives))
	for name, d := range s.deciders {
		out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, time.Since(d.heard).Seconds(), name)
	}
	out <- prometheus.MustNewConstMetric(answeredDesc, prometheus.GaugeValue, gauge(s.answered))
	out <- prometheus.MustNewConstMetric(disabledDesc, prometheus.GaugeValue, gauge(s.limiter.Disabled()))
	out <- prometheus.MustNewConstMetric(revisionDesc, prometheus.GaugeValue, float64(s.config.Revision))
}

// gauge returns 1 for what is.
func gauge(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
