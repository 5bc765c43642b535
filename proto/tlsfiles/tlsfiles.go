// Package tlsfiles keeps the certificate of a node, and whom it trusts, as files
// say it, and reads them again while the node runs: connections that are there
// go on, new ones use what the files hold then. Certificates that have expired
// end no connection and no process.
package tlsfiles

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"grl/proto/access"
)

const (
	// poll is how often the files are read. Reading, not watching, follows the
	// symlink swaps of Kubernetes.
	poll = time.Second
	// sayAgain is how often a certificate that is about to expire, or files that
	// do not hold, are complained about.
	sayAgain = 10 * time.Minute
	// handshake bounds that of a connection that a node opens.
	handshake = 3 * time.Second
)

// Options says what Files need.
type Options struct {
	Config Config // valid and enabled
	Log    *slog.Logger
	// Registry takes the times at which the certificates expire.
	Registry prometheus.Registerer
}

// Files are the certificate and the trusted CAs of a node. Create them with
// Open, and call Run to follow changes. All methods may be called concurrently.
type Files struct {
	opts Options
	held atomic.Pointer[material]

	mu        sync.Mutex // guards what follows, and reading the files
	complaint string     // that was made last
	said      time.Time  // when
	failed    bool       // the files did not hold together when they were read last
}

// Open reads the files. It returns an error if they do not belong together, or
// the certificate is none of a node of the domain; one that has expired is
// logged by Run.
func Open(o Options) (*Files, error) {
	m, err := read(o.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	f := &Files{opts: o}
	f.held.Store(m)
	for name, at := range map[string]func(*material) time.Time{
		"own": func(m *material) time.Time { return m.ends },
		"ca":  func(m *material) time.Time { return m.caEnds },
	} {
		promauto.With(o.Registry).NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "grl_tls_certificate_expiry_timestamp_seconds",
			Help:        "When the node's own certificate, and the CA that it is of, expire.",
			ConstLabels: prometheus.Labels{"certificate": name},
		}, func() float64 { return float64(at(f.held.Load()).Unix()) })
	}
	return f, nil
}

// Node returns what the certificate says that this process is.
func (f *Files) Node() access.Node { return f.held.Load().node }

// Run reads the files again each second until ctx ends, and complains about a
// certificate with less than a third of its life left.
func (f *Files) Run(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		f.Reload(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Reload takes in what the files hold now, if it holds together.
func (f *Files) Reload(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, held := time.Now(), f.held.Load()
	m, err := read(f.opts.Config, held)
	if err != nil {
		if f.failed { // else they may be in the middle of being written
			f.complain(ctx, now, slog.LevelError, "certificate not reloaded; the old one stays", "err", err)
		}
		f.failed = true
		return
	}
	f.failed = false
	if m != held {
		f.held.Store(m)
		f.opts.Log.InfoContext(ctx, "reloaded certificate", "node", m.node.String(), "expires", m.ends.UTC())
		if m.node != held.node {
			f.opts.Log.WarnContext(ctx, "the new certificate is of another node", "was", held.node.String(), "is", m.node.String())
		}
	}
	switch {
	case now.After(m.ends):
		f.complain(ctx, now, slog.LevelError, "own certificate has expired: no new connections to other nodes", "expired", m.ends.UTC())
	case now.After(m.alarm()):
		f.complain(ctx, now, slog.LevelWarn, "own certificate expires soon", "expires", m.ends.UTC())
	case now.After(m.caEnds):
		f.complain(ctx, now, slog.LevelError, "CA of the own certificate has expired", "expired", m.caEnds.UTC())
	default:
		f.complaint = ""
	}
}

// alarm returns when a third of the life of the certificate is left.
func (m *material) alarm() time.Time { return m.ends.Add(-m.ends.Sub(m.begins) / 3) }

// complain logs, unless it did lately. The caller holds mu.
func (f *Files) complain(ctx context.Context, now time.Time, level slog.Level, message string, args ...any) {
	if f.complaint == message && now.Sub(f.said) < sayAgain {
		return
	}
	f.complaint, f.said = message, now
	f.opts.Log.Log(ctx, level, message, args...)
}

// Server returns the configuration of a port: TLS of at least a version, with
// the certificate as it is when a peer connects. A peer may give a certificate,
// which must then be of the trusted CAs; who it is, access.OfConnection says.
func (f *Files) Server(least uint16) *tls.Config {
	return &tls.Config{
		MinVersion: least,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := f.held.Load()
			return &tls.Config{
				MinVersion:   least,
				NextProtos:   []string{"h2", "http/1.1"},
				Certificates: []tls.Certificate{m.certificate},
				ClientCAs:    m.trusted,
				ClientAuth:   tls.VerifyClientCertIfGiven,
				// A resumed session would go by the CAs of an earlier time.
				SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// Dial returns a function that opens TLS connections, for
// http.Transport.DialTLSContext, with the certificate and the CAs as they are at
// that time. The peer must have a certificate for the host that is dialled, and
// be a node that check takes.
func (f *Files) Dial(check func(access.Node) error) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, handshake)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secured := tls.Client(conn, f.client(host, check))
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", address, err), conn.Close())
		}
		return secured, nil
	}
}

// client returns the configuration of one connection to a host.
func (f *Files) client(host string, check func(access.Node) error) *tls.Config {
	m := f.held.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: host,
		NextProtos: []string{"h2"},
		RootCAs:    m.trusted,
		// Given even if the peer's CAs are others: its refusal says more than a
		// missing certificate.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &m.certificate, nil },
		VerifyConnection: func(state tls.ConnectionState) error {
			n, err := access.OfConnection(&state, f.opts.Config.Domain)
			if err != nil {
				return err
			}
			return check(n)
		},
	}
}
