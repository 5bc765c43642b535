package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"grl/limiter/limitsfile"
	"grl/roles/command/simulate"
)

// Bounds of flags of grl simulate.
const (
	mostHosts   = 1_000_000
	mostNodes   = 1_000 // zones, and regions
	mostSeconds = 31 * 24 * 3600
	leastDelta  = 5 * time.Millisecond
	mostDelay   = 10 * time.Second // of a message, one way
)

// outputs are the formats of grl simulate.
var outputs = []string{"table", "json", "yaml", "markdown"}

// simulateFlags are the flags of grl simulate. What is not given stays zero,
// which stands for its default.
type simulateFlags struct {
	simulate.Options
	seconds          int
	limits, trace    string
	output, plot     string
	asJSON, markdown bool
	list             bool
}

func (f *simulateFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Scenarios, "scenario", nil, "`names` of scenarios, or all (default step; trace with --trace)")
	flags.StringSliceVar(&f.Laws, "law", nil, "`names` of laws, or all: a column each (default grl)")
	flags.IntVar(&f.Hosts, "hosts", 0, "hosts of all services together (default 200)")
	flags.IntVar(&f.Zones, "zones", 0, "zones, each with an aggregator (default 4)")
	flags.IntVar(&f.Regions, "regions", 0, "regions; from two on each has a controller below the global one (default 1)")
	flags.IntVar(&f.Services, "services", 0, "services, each with a bucket of its own (default 1)")
	flags.Float64Var(&f.LimitRPS, "limit", 0, "limit of each bucket, requests per second (default 44000; 5 in low, the mean in trace)")
	flags.Float64Var(&f.BaseRPS, "base", 0, "load of each bucket before a surge, requests per second (default half of the limit)")
	flags.IntVar(&f.seconds, "seconds", 0, "length of the run in virtual time (default that of the scenario)")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of all that is random")
	flags.DurationVar(&f.Delta, "delta", 0, "timer of the hosts (default 50ms)")
	flags.Float64Var(&f.Guard, "guard", 0, "local ceiling of a host, times its part of the limit; 0: none (default 2)")
	flags.DurationVar(&f.Links.Host, "host-link", 0, "delay between a host and its aggregator, one way (default 10ms)")
	flags.DurationVar(&f.Links.Aggregator, "node-link", 0, "delay between aggregators and controllers, one way (default 40ms)")
	flags.DurationVar(&f.Links.Jitter, "jitter", 0, "at most so much more delay of each message, which may reorder them")
	flags.Float64Var(&f.Loss, "loss", 0, "share of messages that are lost, from 0 to below 1")
	flags.Float64Var(&f.Duplication, "duplication", 0, "share of messages that arrive twice, from 0 to below 1")
	flags.StringVar(&f.limits, "limits", "", "limits files to try, a `dir` or a file; the load is scaled to each limit")
	flags.StringVar(&f.trace, "trace", "", "what was requested, a CSV `file` or .csv.gz: t_seconds,caller,procedure,status")
	flags.StringVar(&f.plot, "plot", "", "also draw offered, admitted and limit into this SVG `file`")
	flags.StringVarP(&f.output, "output", "o", "table", "output `format`: "+strings.Join(outputs, ", "))
	flags.BoolVar(&f.asJSON, "json", false, "short for -o json")
	flags.BoolVar(&f.markdown, "markdown", false, "short for -o markdown: one table, a line for each scenario and law")
	flags.BoolVar(&f.list, "list", false, "say what the scenarios, laws and metrics are, and run nothing")
}

// flagRange is what a flag must be if it is given.
type flagRange struct {
	flag  string
	holds bool
	want  string
}

func (f *simulateFlags) ranges() []flagRange {
	rate := func(v float64) bool { return v >= limitsfile.MinRPS && v <= limitsfile.MaxRPS }
	delay := func(d time.Duration) bool { return d > 0 && d <= mostDelay }
	share := func(v float64) bool { return v >= 0 && v < 1 }
	return []flagRange{
		{"hosts", f.Hosts >= 1 && f.Hosts <= mostHosts, "1 to 1,000,000"},
		{"zones", f.Zones >= 1 && f.Zones <= mostNodes, "1 to 1,000"},
		{"regions", f.Regions >= 1 && f.Regions <= mostNodes, "1 to 1,000"},
		{"services", f.Services >= 1 && f.Services <= limitsfile.MaxBuckets, "1 to 100,000"},
		{"limit", rate(f.LimitRPS), "0.001 to 1,000,000,000 requests per second"},
		{"base", rate(f.BaseRPS), "0.001 to 1,000,000,000 requests per second"},
		{"seconds", f.seconds >= 1 && f.seconds <= mostSeconds, "1 to 2,678,400"},
		{"delta", f.Delta >= leastDelta && f.Delta <= time.Second, "5ms to 1s"},
		{"guard", f.Guard == 0 || f.Guard >= 1 && f.Guard <= 1000, "0, or 1 to 1000"},
		{"host-link", delay(f.Links.Host), "more than 0, at most 10s"},
		{"node-link", delay(f.Links.Aggregator), "more than 0, at most 10s"},
		{"jitter", f.Links.Jitter == 0 || delay(f.Links.Jitter), "0 to 10s"},
		{"loss", share(f.Loss), "0 to below 1"},
		{"duplication", share(f.Duplication), "0 to below 1"},
		{"output", slices.Contains(outputs, f.output), strings.Join(outputs, ", ")},
	}
}

// check returns what is wrong with the flags that were given, and turns them
// into options.
func (f *simulateFlags) check(flags *pflag.FlagSet) error {
	var errs []error
	for _, r := range f.ranges() {
		if flags.Changed(r.flag) && !r.holds {
			errs = append(errs, fmt.Errorf("--%s %v: want %s", r.flag, flags.Lookup(r.flag).Value, r.want))
		}
	}
	if flags.Changed("guard") && f.Guard == 0 {
		f.Guard = -1 // none
	}
	f.Length = time.Duration(f.seconds) * time.Second
	switch {
	case f.asJSON && f.markdown, (f.asJSON || f.markdown) && flags.Changed("output"):
		errs = append(errs, errors.New("--output, --json and --markdown: want one of them"))
	case f.asJSON:
		f.output = "json"
	case f.markdown:
		f.output = "markdown"
	}
	if info, err := os.Stat(filepath.Dir(f.plot)); f.plot != "" && (err != nil || !info.IsDir()) {
		errs = append(errs, fmt.Errorf("--plot %s: no such directory", f.plot))
	}
	return errors.Join(errs...)
}
