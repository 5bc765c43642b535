package controller

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

const (
	defaultPage = 1000   // rows
	maxPage     = 10_000 // rows
)

// orders are the orders of rows.
var orders = map[grlv1.ListBucketsOrder]func(a, b *entry) int{
	grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_UNSPECIFIED: compareNames,
	grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_DROPPED:     compareDropped,
	grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_OFFERED:     compareOffered,
}

// ListBuckets returns the buckets with their live figures, a page of them.
func (v view) ListBuckets(_ context.Context, r *grlv1.ListBucketsRequest) (*grlv1.ListBucketsResponse, error) {
	size := int(r.GetPageSize())
	if size == 0 {
		size = defaultPage
	}
	if size > maxPage {
		return nil, rpcError(connect.CodeInvalidArgument, fmt.Errorf("page_size: %d, at most %d", size, maxPage))
	}
	compare, ok := orders[r.GetOrder()]
	if !ok {
		return nil, rpcError(connect.CodeInvalidArgument, fmt.Errorf("order: unknown %d", r.GetOrder()))
	}
	byName := r.GetOrder() == grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_UNSPECIFIED
	after, err := readToken(r.GetPageToken())
	if err != nil || after != nil && !byName {
		return nil, rpcError(connect.CodeInvalidArgument, errors.New("page_token: not one of this list"))
	}
	v.mu.Lock()
	entries := v.node.entries(r.GetService())
	v.mu.Unlock()
	slices.SortFunc(entries, func(a, b entry) int { return compare(&a, &b) })
	out := &grlv1.ListBucketsResponse{Total: uint32(len(entries))}
	if after != nil {
		entries = entries[sort.Search(len(entries), func(i int) bool { return compareNames(&entries[i], after) > 0 }):]
	}
	if len(entries) > size {
		entries = entries[:size]
		if byName {
			out.NextPageToken = token(&entries[size-1])
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	g, owners := v.node.glance(time.Now()), v.node.owners()
	silent := make(map[string]bool)
	for _, e := range entries {
		row := v.node.row(g, e.bucket, e.id, owners[e.bucket.Service])
		out.Buckets = append(out.Buckets, row.message())
		for _, zone := range row.SilentZones {
			silent[zone] = true
		}
	}
	out.Silent = silentMessages(g.now, g.silent, func(zone string) bool { return silent[zone] })
	out.Revision = v.node.config.Revision
	return out, nil
}

// entry is what of a cell, or of a bucket that nobody calls, decides its place
// in a list. A row costs more, so only those that are shown are made.
type entry struct {
	bucket           *limiter.Bucket
	id               limiter.CellID
	offered, dropped float64 // requests per second; dropped virtually too
}

// entries returns those of a service, of all if it is "", in no order.
func (n *node) entries(service string) []entry {
	of := func(b *limiter.Bucket) bool { return service == "" || b.Service == service }
	seen := make(map[*limiter.Bucket]bool)
	out := make([]entry, 0, len(n.buckets))
	n.cells.Each(func(i int, id limiter.CellID) {
		if b := n.states[i].bucket; of(b) && n.original(i) == i {
			seen[b] = true
			offered := n.states[i].rate.Offered.RPS()
			dropped, shadowDropped := n.flows[i].shares(n.ticks)
			out = append(out, entry{b, id, offered, (dropped + shadowDropped) * offered})
		}
	})
	for name, b := range n.buckets {
		if of(b) && !seen[b] {
			out = append(out, entry{bucket: b, id: limiter.CellID{Bucket: name}})
		}
	}
	return out
}

// compareNames orders by bucket, instance, caller and class.
func compareNames(a, b *entry) int {
	if c := strings.Compare(a.bucket.Service, b.bucket.Service); c != 0 {
		return c // most differ here, and there are many
	}
	return cmp.Or(
		strings.Compare(a.bucket.Name, b.bucket.Name),
		strings.Compare(a.id.Instance, b.id.Instance),
		strings.Compare(a.id.Caller, b.id.Caller),
		strings.Compare(a.id.Class, b.id.Class),
	)
}

// compareOffered orders by what is offered, the highest first.
func compareOffered(a, b *entry) int {
	if c := cmp.Compare(b.offered, a.offered); c != 0 {
		return c
	}
	return compareNames(a, b)
}

// compareDropped orders by what is dropped, truly and virtually, then by what is
// offered, the highest first.
func compareDropped(a, b *entry) int {
	if c := cmp.Compare(b.dropped, a.dropped); c != 0 {
		return c
	}
	return compareOffered(a, b)
}

// token returns the page token of what comes after e.
func token(e *entry) string {
	names := []string{e.bucket.Service, e.bucket.Name, e.id.Instance, e.id.Caller, e.id.Class}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(names, "\x00")))
}

// readToken returns an entry with the names of the last one of the page before,
// nil for the first page.
func readToken(text string) (*entry, error) {
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
	return &entry{
		bucket: &limiter.Bucket{Service: parts[0], Name: parts[1]},
		id:     limiter.CellID{Instance: parts[2], Caller: parts[3], Class: parts[4]},
	}, nil
}
