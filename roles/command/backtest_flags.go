package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"grl/policy/backtest"
)

// mostLength bounds --train, --test and --step.
const mostLength = 10 * 365 * 24 * time.Hour

// backtestFlags are the flags of grl backtest.
type backtestFlags struct {
	call        calling
	series      []string
	source      string // "": files
	bucket      string
	instance    string
	caller      string
	prometheus  string
	policy      string
	trainText   string
	testText    string
	stepText    string
	boundsName  string
	plot        string
	asJSON      bool
	train, test time.Duration // 0: by the length of the series
	step        time.Duration // 0: by the rows
	bounds      backtest.Bounds
	boundsSet   bool
}

func (f *backtestFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.series, "series", nil, "CSV `files` of past traffic, also gzipped; further ones may follow as arguments")
	flags.StringVar(&f.source, "source", "", "where the past of --bucket is instead: `history|prometheus`, the controller's or that of a server like Prometheus")
	flags.StringVar(&f.bucket, "bucket", "", "`SERVICE/BUCKET` to take the past of")
	flags.StringVar(&f.instance, "instance", "", "with history: `region` or zone of a bucket that is limited in each")
	flags.StringVar(&f.caller, "caller", "", "with history: `caller` of a bucket that is limited per caller")
	flags.StringVar(&f.prometheus, "prometheus", "", "`URL` of the server, with prometheus")
	flags.StringVar(&f.policy, "policy", "peak", "what to try: a `name`, of a kind with its defaults ("+strings.Join(kindNames(), ", ")+") or of a policy at the controller; or a policy file")
	flags.StringVar(&f.trainText, "train", "", "`time` that is known before the first period, such as 4w (default by the length of the series)")
	flags.StringVar(&f.testText, "test", "", "`time` of a period, such as 1w or 1d (default by the length of the series)")
	flags.StringVar(&f.stepText, "step", "", "`time` between two rows (default the shortest there is)")
	flags.StringVar(&f.boundsName, "bounds", "rails", "what holds limits back: `"+strings.Join(boundsNames(), "|")+"`; live also rounds, and leaves small moves out (default of a policy file)")
	flags.StringVar(&f.plot, "plot", "", "also draw load and limits into this SVG `file`")
	flags.BoolVar(&f.asJSON, "json", false, "an object for each series, one on a line")
}

// check returns what is wrong with the flags.
func (f *backtestFlags) check(flags *pflag.FlagSet) error {
	var errs []error
	for _, d := range []struct {
		flag, text string
		to         *time.Duration
	}{{"train", f.trainText, &f.train}, {"test", f.testText, &f.test}, {"step", f.stepText, &f.step}} {
		if !flags.Changed(d.flag) {
			continue
		}
		length, err := parseSpan(d.text)
		if err == nil && (length < time.Second || length > mostLength) {
			err = fmt.Errorf("%q is not between 1s and ten years", d.text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", d.flag, err))
		}
		*d.to = length
	}
	var err error
	if f.bounds, err = parseBounds(f.boundsName); err != nil {
		errs = append(errs, err)
	}
	f.boundsSet = flags.Changed("bounds")
	errs = append(errs, f.checkSource(flags))
	if info, err := os.Stat(filepath.Dir(f.plot)); f.plot != "" && (err != nil || !info.IsDir()) {
		errs = append(errs, fmt.Errorf("--plot %s: no such directory", f.plot))
	}
	return errors.Join(errs...)
}

// checkSource returns what is wrong with where the past is.
func (f *backtestFlags) checkSource(flags *pflag.FlagSet) error {
	var errs []error
	need := func(holds bool, text string) {
		if !holds {
			errs = append(errs, errors.New(text))
		}
	}
	need(f.source == "" || f.source == ownHistory || f.source == prometheus, fmt.Sprintf("--source %q: want history or prometheus", f.source))
	need(f.source != "" || len(f.series) > 0, "nothing to try it on: name a file with --series, or a --source")
	need(f.source == "" || len(f.series) == 0, "--series and --source: want one of them")
	need((f.source == "") == (f.bucket == ""), "--source and --bucket: want both")
	need((f.source == prometheus) == flags.Changed("prometheus"), "--source prometheus and --prometheus URL: want both")
	need(f.source == ownHistory || f.instance == "" && f.caller == "", "--instance, --caller: want --source history")
	return errors.Join(errs...)
}
