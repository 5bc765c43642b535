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
	var s policy.Series
	var err error
	if f.source == prometheus {
		s, err = f.fromPrometheus(cmd.Context(), errOut, limiter.Bucket{Service: service, Name: name})
	} else {
		s, err = f.fromController(cmd, errOut)
	}
	if err != nil {
		return nil, err
	}
	s = trimmed(s)
	if len(s.RPS) == 0 {
		return nil, fmt.Errorf("%s: there is no history of it", f.bucket)
	}
	return &backtest.File{Name: f.bucket, Series: s}, nil
}

// trimmed leaves out what is unknown at the beginning and the end.
func trimmed(s policy.Series) policy.Series {
	first, last := 0, len(s.RPS)
	for first < last && !policy.Known(s.RPS[first]) {
		first++
	}
	for first < last && !policy.Known(s.RPS[last-1]) {
		last--
	}
	return policy.Series{Start: s.Time(first), Step: s.Step, RPS: s.RPS[first:last]}
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
func (f *backtestFlags) fromController(cmd *cobra.Command, errOut io.Writer) (policy.Series, error) {
	conn, err := f.call.dial(cmd)
	if err != nil {
		return policy.Series{}, err
	}
	to := time.Now().Truncate(time.Hour)
	var pages [][]*grlv1.Minute
	for page := to; to.Sub(page) < longestHistory; page = page.Add(-historyPage) {
		response, err := conn.View.GetHistory(remote.WithTimeout(cmd.Context(), applyTimeout), &grlv1.GetHistoryRequest{
			Bucket: f.bucket, Instance: f.instance, Caller: f.caller,
			FromMs: page.Add(-historyPage).UnixMilli(), ToMs: page.UnixMilli(),
		})
		if err != nil {
			return policy.Series{}, err
		}
		if len(response.GetMinutes()) == 0 {
			break
		}
		pages = append(pages, response.GetMinutes())
	}
	s, dropped := minutes(pages, to)
	if dropped > 0 {
		fmt.Fprintf(errOut, "%s: %d minutes in which it dropped do not teach\n", f.bucket, dropped)
	}
	return s, nil
}

// minutes lays pages of minutes out up to a full hour, the newest page first. A
// minute that is not there was idle, an hour without one is unknown, and so is a
// minute in which something was dropped.
func minutes(pages [][]*grlv1.Minute, to time.Time) (s policy.Series, dropped int) {
	s = policy.Series{Start: to.Add(-time.Duration(len(pages)) * historyPage), Step: time.Minute}
	s.RPS = make([]float64, int(to.Sub(s.Start)/s.Step))
	known := make([]bool, len(s.RPS)/60)
	for _, page := range pages {
		for _, m := range page {
			i := s.Index(time.UnixMilli(m.GetStartMs()))
			if i < 0 || i >= len(s.RPS) {
				continue
			}
			s.RPS[i], known[i/60] = float64(m.GetOffered())/60, true
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
	return s, dropped
}
