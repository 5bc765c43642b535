package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

const (
	// bucketsAtOnce is how many buckets are asked for in one call, which is
	// repeated whole when it breaks off.
	bucketsAtOnce = 500
	// tries is how often a call is made at most.
	tries = 3
)

// Controller reads the controller's own history.
type Controller struct {
	do Caller
}

// Caller calls one controller of a group, another one when that does not answer,
// and returns what call returned.
type Caller func(ctx context.Context, call func(context.Context, grlv1connect.ConfiguratorServiceClient) error) error

// NewController returns a source that asks the controllers that do reaches.
func NewController(do Caller) *Controller { return &Controller{do: do} }

// Name implements Source.
func (*Controller) Name() string { return "history" }

// Read implements Source.
func (c *Controller) Read(ctx context.Context, q Query, fn func(Bucket) error) error {
	for wanted := range slices.Chunk(q.Buckets, bucketsAtOnce) {
		if err := c.readChunk(ctx, q, wanted, fn); err != nil {
			return err
		}
	}
	return nil
}

// readChunk reads some buckets, and those that are left again when a stream
// breaks off.
func (c *Controller) readChunk(ctx context.Context, q Query, wanted []Wanted, fn func(Bucket) error) error {
	left := make(map[string]*Wanted, len(wanted))
	for i := range wanted {
		left[wanted[i].Bucket.FullName()] = &wanted[i]
	}
	var fromFn error
	give := func(b Bucket) error {
		delete(left, b.Name)
		fromFn = fn(b)
		return fromFn
	}
	var err error
	for try := range tries {
		if err = wait(ctx, try); err != nil {
			return err
		}
		err = c.do(ctx, func(ctx context.Context, client grlv1connect.ConfiguratorServiceClient) error {
			return readStream(ctx, client, q, left, give)
		})
		switch {
		case fromFn != nil:
			return fromFn
		case err == nil:
			return nil
		case !passing(err) || ctx.Err() != nil:
			return fmt.Errorf("read history: %w", err)
		}
	}
	return fmt.Errorf("read history: %w", err)
}

// passing reports whether an error may be gone at the next try.
func passing(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeAborted, connect.CodeResourceExhausted:
		return true
	}
	return false
}

// readStream reads the buckets that are left from one controller.
func readStream(ctx context.Context, client grlv1connect.ConfiguratorServiceClient, q Query, left map[string]*Wanted, give func(Bucket) error) error {
	request := &grlv1.ReadHistoryRequest{FromMs: q.From.UnixMilli(), ToMs: q.To.UnixMilli()}
	for name := range left {
		request.Buckets = append(request.Buckets, name)
	}
	slices.Sort(request.Buckets)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.ReadHistory(ctx, request)
	if err != nil {
		return err
	}
	defer stream.Close()
	if !stream.Receive() {
		return cmp.Or(stream.Err(), errors.New("the answer is empty"))
	}
	r, err := newReader(q, stream.Msg().GetSpan(), left, give)
	if err != nil {
		return err
	}
	for stream.Receive() {
		if err := r.take(stream.Msg().GetCell()); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return r.finish()
}
