package controller

import (
	"context"
	"time"

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

// Limits returns the limits that a bucket had.
func (v view) Limits(ctx context.Context, bucket, instance string, since time.Time) ([]page.LimitChange, error) {
	return nil, nil
}
