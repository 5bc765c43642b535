package fleet

import (
	"encoding/json"
	"math"
	"time"

	"grl/limiter"
)

// Result is what came of a run.
type Result struct {
	Law      string
	Scenario string // "" with a plan of one's own
	Length   time.Duration
	Metrics  Metrics
	Total    Series     // of all buckets
	Buckets  []Bucket   // in the order of the configuration
	Cells    []CellInfo // that hosts have
	Hosts    []HostInfo
	Requests Counts
}

// Bucket is what came of one bucket in one instance of its scope.
type Bucket struct {
	Name     string // full name
	Instance string // region or zone; "" for a global one
	Caller   string // of a bucket with a limit for each caller; else ""
	LimitRPS float64
	Series   Series
}

// CellInfo is what came of one cell.
type CellInfo struct {
	ID     limiter.CellID
	Bucket int // index in Result.Buckets
	Counts Counts
	Steady Counts // within the plan's steady spans; from Plan.From if it has none
}

// HostInfo is what came of one host, over all that took its place.
type HostInfo struct {
	Service int // index in the configuration
	Zone    int
	Group   int // index in the plan's loads
	Counts  Counts
	Steady  Counts // as of a cell
}

// Counts are numbers of requests; offered = admitted + dropped.
type Counts struct {
	Offered, Dropped uint64
}

// Admitted returns what was not dropped.
func (c Counts) Admitted() uint64 { return c.Offered - c.Dropped }

// Series is what happened over time, in slots of equal length. Rates are in
// requests per second.
type Series struct {
	Slot     time.Duration
	Offered  []float64 // retries included
	Admitted []float64
	Mean     []float64 // of Offered, before chance
	Limit    float64
	Ratio    []float64 // share of Offered that was dropped
}

// Metrics judge a run. What a plan has no part for is NaN; what did not happen
// before the end is +Inf. Several buckets count together: areas and limits are
// added up.
type Metrics struct {
	// OvershootSeconds is the area of admitted above the limit while the mean load
	// is above it, over the limit. It is taken in slots of 50 ms, or as long as the
	// limit needs for 1,000 requests but at most a second, and contains the noise
	// of such slots.
	OvershootSeconds float64 `json:"overshoot_seconds"`
	// SettleSeconds is how long after the change the admitted rate came within
	// 5 % of the limit, or of the load if that is less, for good; NaN where the
	// requests are too few to tell 5 % from chance.
	SettleSeconds float64 `json:"settle_seconds"`
	// FalseDropsSeconds is what was dropped while the mean load, and the
	// retries that came, were within the limit; over the limit.
	FalseDropsSeconds float64 `json:"false_drops_seconds"`
	// FalseDropsPercent is the same over what was offered meanwhile.
	FalseDropsPercent float64 `json:"false_drops_percent"`
	// SteadySDPercent is the standard deviation of means of one second of the
	// admitted rate in steady overload, of the limit.
	SteadySDPercent float64 `json:"steady_sd_percent"`
	// MeanErrorPercent is how far admitted was above the limit in steady
	// overload, in the mean.
	MeanErrorPercent float64 `json:"mean_error_percent"`
	// PeakToPeakPercent is the span between the highest and the lowest mean of
	// one second in steady overload, of the limit.
	PeakToPeakPercent float64 `json:"peak_to_peak_percent"`
	// ReleaseSeconds is how long after the fall below the limit drops went on:
	// until the last slot of 50 ms with more than 0.1 % of the limit.
	ReleaseSeconds float64 `json:"release_seconds"`
	// BytesPerHostSecond is the mean of the messages, both ways, between a host
	// and its aggregator: their protobuf encoding, without framing.
	BytesPerHostSecond float64 `json:"bytes_per_host_second"`
	// WorstBytesPerHostSecond is the same in the worst second of the fleet.
	WorstBytesPerHostSecond float64 `json:"worst_bytes_per_host_second"`
	// JainHosts is Jain's index, in (0, 1], of admitted / offered of the hosts
	// in steady overload, or from the start of a plan without: 1 is the same
	// share for all.
	JainHosts float64 `json:"jain_hosts"`
}

// Metric is a line of a table of metrics.
type Metric struct {
	Name  string
	Value float64
}

// List returns the metrics in the order of the table.
func (m Metrics) List() []Metric {
	return []Metric{
		{"overshoot_seconds", m.OvershootSeconds},
		{"settle_seconds", m.SettleSeconds},
		{"false_drops_seconds", m.FalseDropsSeconds},
		{"false_drops_percent", m.FalseDropsPercent},
		{"steady_sd_percent", m.SteadySDPercent},
		{"mean_error_percent", m.MeanErrorPercent},
		{"peak_to_peak_percent", m.PeakToPeakPercent},
		{"release_seconds", m.ReleaseSeconds},
		{"bytes_per_host_second", m.BytesPerHostSecond},
		{"worst_bytes_per_host_second", m.WorstBytesPerHostSecond},
		{"jain_hosts", m.JainHosts},
	}
}

// MarshalJSON leaves out what the plan has no part for; what did not happen is
// null.
func (m Metrics) MarshalJSON() ([]byte, error) {
	out := make(map[string]*float64)
	for _, line := range m.List() {
		switch {
		case math.IsNaN(line.Value):
		case math.IsInf(line.Value, 0):
			out[line.Name] = nil
		default:
			out[line.Name] = &line.Value
		}
	}
	return json.Marshal(out)
}
