package roles

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"grl/proto/access"
	"grl/proto/tlsfiles"
	"grl/proto/uplink"
	"grl/roles/client/proxy"
)

const (
	maxHeaderBytes = 32 << 10
	headerTimeout  = 10 * time.Second // a slow header holds nothing but its connection
	idleTimeout    = 2 * time.Minute

	// An aggregator holds one connection a host, a controller one a zone, each
	// with a stream; more on one connection is a mistake or an attack.
	controlStreams = 100

	// Health and reflection take a name; without a bound a compressed message of
	// a few megabytes would fill the memory.
	maxAsked = 64 << 10
)

// A server is an open listener with what it serves.
type server struct {
	listener
	open net.Listener
	http *http.Server // with TLSConfig: it speaks TLS
}

// newServer returns the server of l for node; nothing is accepted yet.
func (p *process) newServer(node *running, l listener, open net.Listener, registry *prometheus.Registry, log *slog.Logger) *server {
	srv := proxy.Server(node.handlers[l.key], log)
	if l.control {
		srv = controlServer(p.guard(node, l, registry), log)
		if p.tls != nil {
			secure(srv, p.tls, node.name)
		}
	}
	return &server{listener: l, open: open, http: srv}
}

// controlServer returns a server for a control port. It has neither a read nor
// a write timeout, since both would cut streams: bodies have a time of their own.
func controlServer(h http.Handler, log *slog.Logger) *http.Server {
	config := uplink.Pings()
	config.MaxConcurrentStreams = controlStreams
	srv := &http.Server{
		Handler:           inTime(h),
		Protocols:         new(http.Protocols),
		HTTP2:             config,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // any peer can cause it
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return srv
}

// secure makes srv speak TLS and nothing else: 1.3, and 1.2 where people come
// with browsers.
func secure(srv *http.Server, files *tlsfiles.Files, role string) {
	least := uint16(tls.VersionTLS13)
	if role == access.Controller {
		least = tls.VersionTLS12
	}
	srv.TLSConfig = files.Server(least)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(false)
}

// serve answers until shutdown; its error is why it stopped before.
func (s *server) serve() error {
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(s.open); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdown closes the listener, lets requests in flight finish, cuts them when
// ctx ends, and reports whether they had finished before.
func (s *server) shutdown(ctx context.Context) (clean bool) {
	if s.http.Shutdown(ctx) == nil {
		return true
	}
	_ = s.http.Close() // its listener is closed already
	return false
}

// controlHandler adds metrics, health, readiness and reflection to the handler
// of a control port, which may be nil.
func (p *process) controlHandler(node *running, handler http.Handler, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // a caller that hung up
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.ready(node); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	bound := connect.WithReadMaxBytes(maxAsked)
	mux.Handle(grpchealth.NewHandler(checker{p, node}, bound))
	reflector := grpcreflect.NewStaticReflector(append([]string{grpchealth.HealthV1ServiceName}, node.services...)...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, bound))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, bound))
	if handler != nil {
		mux.Handle("/", handler)
	}
	return mux
}

// ready returns nil when node can do its work, else why not.
func (p *process) ready(node *running) error {
	if p.draining.Load() {
		return errors.New("draining")
	}
	return node.ready()
}

// A checker answers gRPC health checks for all services of a node alike, the
// node as a whole and health included.
type checker struct {
	process *process
	node    *running
}

// Check implements grpchealth.Checker.
func (c checker) Check(_ context.Context, request *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if s := request.Service; s != "" && s != grpchealth.HealthV1ServiceName && !slices.Contains(c.node.services, s) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no service %q here", s))
	}
	if err := c.process.ready(c.node); err != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
