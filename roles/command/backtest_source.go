package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"grl/limiter"
	"grl/policy"
	"grl/policy/backtest"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/configurator/history"
)

// The sources of grl backtest besides files.
const (
	ownHistory = "history"
	prometheus = "prometheus"
)

const (
	longestHistory = 26 * 7 * 24 * time.Hour // that is asked for
	historyPage    = 7 * 24 * time.Hour      // of one call
)

// history reads the past of --bucket from --source. What it leaves out is said on
// errOut.
func (f *backtestFlags) history(cmd *cobra.Command, errOut io.Writer) (*backtest.File, error) {
	service, name, ok := strings.Cut(f.bucket, "/")
	if !ok || service == "" || name == "" {
		return nil, wrongUse(fmt.Errorf("--bucket %q: want SERVICE/BUCKET", f.bucket))
	}
	file := &backtest.File{Name: f.bucket}
	var err error
	if f.source == prometheus {
		file.Series, err = f.fromPrometheus(cmd.Context(), errOut, limiter.Bucket{Service: service, Name: name})
	} else {
		err = f.fromController(cmd, errOut, file)
	}
	if err != nil {
		return nil, err
	}
	first, after := file.Series.Trimmed()
	if first == after {
		return nil, fmt.Errorf("%s: there is no history of it", f.bucket)
	}
	file.Series.Start, file.Series.RPS = file.Series.Time(first), file.Series.RPS[first:after]
	if file.Highest != nil {
		file.Highest = file.Highest[first:after]
	}
	return file, nil
}

// fromPrometheus reads the history of a bucket with one limit for all.
func (f *backtestFlags) fromPrometheus(ctx context.Context, errOut io.Writer, b limiter.Bucket) (policy.Series, error) {
	source, err := history.NewPrometheus(history.PrometheusOptions{URL: f.prometheus})
	if err != nil {
		return policy.Series{}, wrongUse(err)
	}
	now := time.Now()
	var series policy.Series
	err = source.Read(ctx, history.Query{Buckets: []history.Wanted{{Bucket: b}}, From: now.Add(-longestHistory), To: now}, func(b history.Bucket) error {
		if b.Err != nil || len(b.Units) == 0 {
			return b.Err
		}
		series = b.Units[0].Series
		for _, note := range b.Units[0].Notes {
			fmt.Fprintf(errOut, "%s: %s\n", b.Name, note)
		}
		return nil
	})
	return series, err
}

// fromController reads the minutes of a cell, page by page from now on back, until
// a page has none.
func (f *backtestFlags) fromController(cmd *cobra.Command, errOut io.Writer, file *backtest.File) error {
	conn, err := f.call.dial(cmd)
	if err != nil {
		return err
	}
	to := time.Now().Truncate(time.Hour)
	var pages [][]*grlv1.Minute
	for page := to; to.Sub(page) < longestHistory; page = page.Add(-historyPage) {
		response, err := conn.View.GetHistory(remote.WithTimeout(cmd.Context(), applyTimeout), &grlv1.GetHistoryRequest{
			Bucket: f.bucket, Instance: f.instance, Caller: f.caller,
			FromMs: page.Add(-historyPage).UnixMilli(), ToMs: page.UnixMilli(),
		})
		if err != nil {
			return err
		}
		if len(response.GetMinutes()) == 0 {
			break
		}
		pages = append(pages, response.GetMinutes())
	}
	if dropped := layOut(file, pages, to); dropped > 0 {
		fmt.Fprintf(errOut, "%s: %d minutes in which it dropped do not teach\n", f.bucket, dropped)
	}
	return nil
}

// layOut lays pages of minutes out up to a full hour, the newest page first, and
// returns in how many something was dropped. A minute that is not there was idle,
// an hour without one is unknown, and so is a minute with drops.
func layOut(file *backtest.File, pages [][]*grlv1.Minute, to time.Time) (dropped int) {
	s := policy.Series{Start: to.Add(-time.Duration(len(pages)) * historyPage), Step: time.Minute}
	s.RPS = make([]float64, int(to.Sub(s.Start)/s.Step))
	highest := make([]float64, len(s.RPS))
	known := make([]bool, len(s.RPS)/60)
	for _, page := range pages {
		for _, m := range page {
			i := s.Index(time.UnixMilli(m.GetStartMs()))
			if i < 0 || i >= len(s.RPS) {
				continue
			}
			s.RPS[i], highest[i], known[i/60] = float64(m.GetOffered())/60, float64(m.GetHighestSecond()), true
			if m.GetDropped() > 0 {
				s.RPS[i] = policy.Unknown
				dropped++
			}
		}
	}
	for i := range s.RPS {
		if !known[i/60] {
			s.RPS[i] = policy.Unknown
		}
	}
	file.Series, file.Highest = s, highest
	return dropped
}
