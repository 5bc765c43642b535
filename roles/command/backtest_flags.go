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
	series      []string
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
	flags.StringVar(&f.policy, "policy", "peak", "what to try: a kind with its defaults ("+strings.Join(kindNames(), ", ")+"), or a policy `file`")
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
	if len(f.series) == 0 {
		errs = append(errs, errors.New("nothing to try it on: name a file with --series"))
	}
	if info, err := os.Stat(filepath.Dir(f.plot)); f.plot != "" && (err != nil || !info.IsDir()) {
		errs = append(errs, fmt.Errorf("--plot %s: no such directory", f.plot))
	}
	return errors.Join(errs...)
}
