package configurator

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"grl/proto/grl/v1/grlv1connect"
)

// maxAnswer bounds what a controller answers at once, in bytes: a whole
// configuration.
const maxAnswer = 64 << 20

// conn is one controller.
type conn struct {
	grlv1connect.ConfiguratorServiceClient
	config   grlv1connect.ConfigServiceClient
	policies grlv1connect.PolicyServiceClient
	view     grlv1connect.ViewServiceClient
}

// group is the controllers of a group, of which any will do. It may be used
// concurrently.
type group struct {
	conns []conn

	mu sync.Mutex // guards at
	at int        // that answered last
}

func newGroup(addresses []string, client *http.Client, proof bearer) *group {
	options := []connect.ClientOption{
		connect.WithReadMaxBytes(maxAnswer), connect.WithGRPC(), connect.WithInterceptors(proof),
		connect.WithAcceptCompression("gzip", nil, nil), // packing weeks of history costs more than sending them
	}
	g := &group{}
	for _, address := range addresses {
		g.conns = append(g.conns, conn{
			grlv1connect.NewConfiguratorServiceClient(client, address, options...),
			grlv1connect.NewConfigServiceClient(client, address, options...),
			grlv1connect.NewPolicyServiceClient(client, address, options...),
			grlv1connect.NewViewServiceClient(client, address, options...),
		})
	}
	return g
}

// do calls one controller after the other until one answers, and returns what
// that said.
func (g *group) do(ctx context.Context, call func(context.Context, conn) error) error {
	g.mu.Lock()
	first := g.at
	g.mu.Unlock()
	var errs []error
	for i := range g.conns {
		at := (first + i) % len(g.conns)
		err := call(ctx, g.conns[at])
		if code := connect.CodeOf(err); err == nil || ctx.Err() != nil || code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded {
			g.mu.Lock()
			g.at = at
			g.mu.Unlock()
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// bearer adds what proves the configurator to each call: the token in a file,
// read anew, so that it can be replaced, else what it has in common with its
// process.
type bearer struct{ tokenFile, own string }

func (b bearer) add(h http.Header) error {
	token := []byte(b.own)
	if b.tokenFile != "" {
		var err error
		if token, err = os.ReadFile(b.tokenFile); err != nil {
			return connect.NewError(connect.CodeUnauthenticated, errors.New("cannot read configurator.token_file"))
		}
	}
	if len(token) > 0 {
		h.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return nil
}

// WrapUnary implements connect.Interceptor.
func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if err := b.add(r.Header()); err != nil {
			return nil, err
		}
		return next(ctx, r)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		c := next(ctx, spec)
		_ = b.add(c.RequestHeader()) // the server refuses what lacks it
		return c
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
