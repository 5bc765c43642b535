package controller

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/web"
)

const (
	defaultPage = 1000   // rows
	maxPage     = 10_000 // rows
)

// ListBuckets returns the buckets with their live figures, a page of them.
func (v view) ListBuckets(_ context.Context, r *grlv1.ListBucketsRequest) (*grlv1.ListBucketsResponse, error) {
	size := int(r.GetPageSize())
	if size == 0 {
		size = defaultPage
	}
	if size > maxPage {
		return nil, rpcError(connect.CodeInvalidArgument, fmt.Errorf("page_size: %d, at most %d", size, maxPage))
	}
	compare, ok := map[grlv1.ListBucketsOrder]func(a, b *row) int{
		grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_UNSPECIFIED: compareNames,
		grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_DROPPED:     compareDropped,
		grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_OFFERED:     compareOffered,
	}[r.GetOrder()]
	if !ok {
		return nil, rpcError(connect.CodeInvalidArgument, fmt.Errorf("order: unknown %d", r.GetOrder()))
	}
	byName := r.GetOrder() == grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_UNSPECIFIED
	after, err := readToken(r.GetPageToken())
	if err != nil || after != nil && !byName {
		return nil, rpcError(connect.CodeInvalidArgument, errors.New("page_token: not one of this list"))
	}
	rows := v.rows(r.GetService())
	slices.SortFunc(rows, func(a, b row) int { return compare(&a, &b) })
	out := &grlv1.ListBucketsResponse{Total: uint32(len(rows))}
	if after != nil {
		rows = rows[sort.Search(len(rows), func(i int) bool { return compareNames(&rows[i], after) > 0 }):]
	}
	if len(rows) > size {
		rows = rows[:size]
		if byName {
			out.NextPageToken = token(&rows[size-1])
		}
	}
	for i := range rows {
		out.Buckets = append(out.Buckets, rows[i].message())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	out.Revision = v.node.config.Revision
	return out, nil
}

// token returns the page token of the rows after r.
func token(r *row) string {
	names := []string{r.Service, r.Name, r.Instance, r.Caller, r.Class}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(names, "\x00")))
}

// readToken returns a row with the names of the last one of the page before, nil
// for the first page.
func readToken(text string) (*row, error) {
	if text == "" {
		return nil, nil
	}
	names, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(string(names), "\x00")
	if len(parts) != 5 {
		return nil, errors.New("not five names")
	}
	return &row{Bucket: web.Bucket{Service: parts[0], Name: parts[1], Instance: parts[2], Caller: parts[3], Class: parts[4]}}, nil
}
