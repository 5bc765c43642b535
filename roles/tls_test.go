package roles

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/tlsfiles"
	"grl/proto/uplink"
)

var (
	payments = access.Node{Role: access.Client, Zone: "eu1", Service: "payments"}
	zone     = access.Node{Role: access.Aggregator, Zone: "eu1"}
	region   = access.Node{Role: access.Controller, Zone: "eu"}
)

// tlsConfig returns the configuration of a fleet of one region and zone.
func tlsConfig(files tlsfiles.Config) Config {
	c := Default()
	c.TLS = files
	c.Client.Zone, c.Client.Region, c.Client.Service = "eu1", "eu", "payments"
	c.Aggregator.Zone, c.Aggregator.Region = "eu1", "eu"
	c.Controller.Region = "eu"
	c.Client.Aggregators = []string{"https://127.0.0.1:1"}
	c.Aggregator.Controllers = []string{"https://127.0.0.1:1"}
	return c
}

// with returns an HTTP client that gives these certificates, whatever the server
// asks for.
func (ca testCA) with(least uint16, most uint16, certificates ...tls.Certificate) *http.Client {
	c := uplink.HTTPClient()
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{
		RootCAs: ca.pool(), MinVersion: least, MaxVersion: most,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return new(tls.Certificate), nil
			}
			return &certificates[0], nil
		},
	}
	ca.t.Cleanup(c.CloseIdleConnections)
	return c
}

// shake returns why a server does not take a certificate. With TLS 1.3 a client
// learns that after its own handshake, when it first reads.
func (ca testCA) shake(address string, certificates ...tls.Certificate) error {
	ca.t.Helper()
	config := ca.with(0, 0, certificates...).Transport.(*http.Transport).TLSClientConfig
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // the server of HTTP/2 begins
	return err
}

// join opens a stream with a hello, and returns why the parent ended it; nil if
// it stayed.
func join(t *testing.T, dial *http.Client, address string, hello *grlv1.Hello) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := grlv1connect.NewTreeServiceClient(dial, "https://"+address).Join(ctx)
	if err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = s.CloseResponse()
	}()
	if err := s.Send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Hello{Hello: hello}}); err != nil && !strings.Contains(err.Error(), "EOF") {
		return err // of an EOF, Receive says the reason
	}
	// A report that is none ends a stream that was let in, in a way of its own.
	_ = s.Send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: &grlv1.Report{Sequence: 1, Cell: []uint32{7}}}})
	for {
		if _, err := s.Receive(); err != nil {
			if connect.CodeOf(err) == connect.CodeInvalidArgument {
				return nil
			}
			return err
		}
	}
}

func helloOf(n access.Node) *grlv1.Hello {
	m := &grlv1.Hello{Node: "n", Zone: n.Zone, Region: "eu", BootId: 1}
	switch n.Role {
	case access.Client:
		m.Role, m.Services = grlv1.Role_ROLE_CLIENT, []string{n.Service}
	case access.Aggregator:
		m.Role, m.AllServices = grlv1.Role_ROLE_AGGREGATOR, true
	case access.Controller:
		m.Role, m.Zone, m.Region, m.AllServices = grlv1.Role_ROLE_CONTROLLER, "", n.Zone, true
	}
	return m
}

// TestWrongCertificates shows certificates that are not right to an aggregator,
// over real connections: each is refused for its reason.
func TestWrongCertificates(t *testing.T) {
	ca, other := newTestCA(t, testDomain), newTestCA(t, testDomain)
	address := run(t, tlsConfig(ca.issue(zone)), slog.DiscardHandler, access.Aggregator).at(t, "aggregator.listen")
	if err := join(t, ca.with(0, 0, load(t, ca.issue(payments))), address, helloOf(payments)); err != nil {
		t.Fatalf("the right certificate is refused: %v", err)
	}
	now := time.Now()
	id, _ := payments.ID(testDomain)
	tampered := load(t, ca.issue(payments))
	der := append([]byte{}, tampered.Certificate[0]...)
	der[len(der)-1] ^= 1
	tampered.Certificate, tampered.Leaf = [][]byte{der}, nil
	foreign := ca.sign("spiffe://other.test/role/client/zone/eu1/svc/payments")

	tests := []struct {
		name        string
		certificate []tls.Certificate
		hello       *grlv1.Hello
		want        string
	}{
		{"none", nil, helloOf(payments), "needs the certificate of client"},
		{"expired", []tls.Certificate{load(t, ca.issueAt(payments, now.Add(-time.Hour), time.Minute))}, helloOf(payments), "expired certificate"},
		{"not yet valid", []tls.Certificate{load(t, ca.issueAt(payments, now.Add(time.Hour), time.Hour))}, helloOf(payments), "expired certificate"},
		{"of another CA", []tls.Certificate{load(t, other.issue(payments))}, helloOf(payments), "unknown certificate authority"},
		{"signed by itself", []tls.Certificate{signed(t, nil, nil, id)}, helloOf(payments), "unknown certificate authority"},
		{"tampered with", []tls.Certificate{tampered}, helloOf(payments), "tls: "},
		{"no id", []tls.Certificate{ca.sign()}, helloOf(payments), "0 URIs"},
		{"two ids", []tls.Certificate{ca.sign(id, id)}, helloOf(payments), "2 URIs"},
		{"an id of another kind", []tls.Certificate{ca.sign("spiffe://grl.test/ns/shop/sa/payments")}, helloOf(payments), "read SPIFFE id"},
		{"another trust domain", []tls.Certificate{foreign}, helloOf(payments), `trust domain "other.test"`},
		{"another role", []tls.Certificate{load(t, ca.issue(zone))}, helloOf(payments), "aggregator of zone eu1 may not call TreeService/Join here; client or controller may"},
		{"another zone", []tls.Certificate{load(t, ca.issue(access.Node{Role: access.Client, Zone: "eu2", Service: "payments"}))}, helloOf(payments), `hello of zone "eu1" with the certificate of a client of payments in zone eu2`},
		{"another service", []tls.Certificate{load(t, ca.issue(access.Node{Role: access.Client, Zone: "eu1", Service: "shop"}))}, helloOf(payments), `hello of "payments" with the certificate of a client of shop`},
		{"another caller", []tls.Certificate{load(t, ca.issue(payments))}, &grlv1.Hello{Role: grlv1.Role_ROLE_CLIENT, Node: "n", Zone: "eu1", Region: "eu", Callers: []string{"shop"}}, `hello of "shop"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := ca.shake(address, tt.certificate...)
			if err == nil {
				err = join(t, ca.with(0, 0, tt.certificate...), address, tt.hello)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
	t.Run("TLS 1.2", func(t *testing.T) {
		if err := join(t, ca.with(0, tls.VersionTLS12, load(t, ca.issue(payments))), address, helloOf(payments)); err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("%v, want a refusal of the version", err)
		}
	})
	t.Run("plain text", func(t *testing.T) {
		s, err := grlv1connect.NewTreeServiceClient(uplink.HTTPClient(), "http://"+address).Join(t.Context())
		if err == nil {
			_ = s.Send(nil)
			_, err = s.Receive()
		}
		if err == nil {
			t.Error("a stream in plain text was let in")
		}
	})
}

// TestWrongCertificatesAtController shows certificates of nodes to a controller,
// at the procedures of nodes and of people.
func TestWrongCertificatesAtController(t *testing.T) {
	ca := newTestCA(t, testDomain)
	address := run(t, tlsConfig(ca.issue(region)), slog.DiscardHandler, access.Controller).at(t, "controller.listen")
	us := access.Node{Role: access.Controller, Zone: "us"}
	tests := []struct {
		name        string
		certificate access.Node
		hello       *grlv1.Hello
		want        string // "": let in
	}{
		{"aggregator", zone, helloOf(zone), ""},
		{"controller of a region", us, helloOf(us), ""},
		{"client", payments, helloOf(zone), "client of payments in zone eu1 may not call TreeService/Join here; aggregator or controller may"},
		{"configurator", access.Node{Role: access.Configurator, Zone: "eu"}, helloOf(zone), "may not call TreeService/Join"},
		{"aggregator of another zone", access.Node{Role: access.Aggregator, Zone: "eu2"}, helloOf(zone), `hello of zone "eu1"`},
		{"aggregator as a controller", zone, helloOf(us), "hello of a controller"},
		{"controller of another region", us, helloOf(access.Node{Role: access.Controller, Zone: "ap"}), `hello of region "ap"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := join(t, ca.with(0, 0, load(t, ca.issue(tt.certificate))), address, tt.hello)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
	t.Run("node as people", func(t *testing.T) {
		view := grlv1connect.NewViewServiceClient(ca.with(0, 0, load(t, ca.issue(zone))), "https://"+address)
		_, err := view.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{})
		if connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "which is for people") {
			t.Errorf("%v, want a refusal", err)
		}
	})
	t.Run("node over TLS 1.2", func(t *testing.T) {
		err := join(t, ca.with(0, tls.VersionTLS12, load(t, ca.issue(zone))), address, helloOf(zone))
		if err == nil || !strings.Contains(err.Error(), "nodes speak TLS 1.3") {
			t.Errorf("%v, want a refusal of the version", err)
		}
	})
	t.Run("browser over TLS 1.2", func(t *testing.T) {
		r, err := ca.with(0, tls.VersionTLS12).Get("https://" + address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
	})
}

// TestWrongServerCertificates dials servers whose certificates are not those of
// the aggregator that is looked for.
func TestWrongServerCertificates(t *testing.T) {
	ca, other := newTestCA(t, testDomain), newTestCA(t, testDomain)
	files, err := tlsfiles.Open(tlsfiles.Options{Config: ca.issue(payments), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	dial := files.Dial(aggregatorOf("eu1", "eu"))
	now := time.Now()
	tests := []struct {
		name        string
		certificate tls.Certificate
		want        string // "": connects
	}{
		{"right", load(t, ca.issue(zone)), ""},
		{"the controller of the region", load(t, ca.issue(region)), ""},
		{"another host", load(t, ca.issueAt(zone, now, time.Hour, "10.9.9.9", "agg.test")), "10.9.9.9, not 127.0.0.1"},
		{"no host", load(t, ca.issueAt(zone, now, time.Hour)), "127.0.0.1"},
		{"client that plays aggregator", load(t, ca.issue(payments)), "client of payments in zone eu1 answers, not the aggregator of zone eu1"},
		{"aggregator of another zone", load(t, ca.issue(access.Node{Role: access.Aggregator, Zone: "eu2"})), "aggregator of zone eu2 answers"},
		{"controller of another region", load(t, ca.issue(access.Node{Role: access.Controller, Zone: "us"})), "controller of region us answers"},
		{"expired", load(t, ca.issueAt(zone, now.Add(-time.Hour), time.Minute, "127.0.0.1")), "expired"},
		{"another CA", load(t, other.issue(zone)), "unknown authority"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{tt.certificate}, NextProtos: []string{"h2"}})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_ = c.(*tls.Conn).HandshakeContext(t.Context())
				}
			}()
			conn, err := dial(t.Context(), "tcp", l.Addr().String())
			if err == nil {
				_ = conn.Close()
			}
			_ = l.Close()
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestTLSConfig holds what keeps a process from starting with TLS.
func TestTLSConfig(t *testing.T) {
	ca := newTestCA(t, testDomain)
	right := tlsConfig(ca.issue(payments))
	tests := []struct {
		name   string
		role   string
		change func(*Config)
		want   string // "": starts
	}{
		{"right", access.Client, func(*Config) {}, ""},
		{"no key", access.Client, func(c *Config) { c.TLS.Key = "" }, "tls.key: empty"},
		{"wrong domain", access.Client, func(c *Config) { c.TLS.Domain = "A" }, "tls.domain"},
		{"plain text address", access.Client, func(c *Config) { c.Client.Aggregators = []string{"http://127.0.0.1:7071"} }, "write https://"},
		{"https without a certificate", access.Client, func(c *Config) { c.TLS = tlsfiles.Default() }, "client.aggregators: https://127.0.0.1:1 needs a certificate"},
		{"no file", access.Client, func(c *Config) { c.TLS.Cert = "/nowhere" }, "/nowhere"},
		{"key of another certificate", access.Client, func(c *Config) { c.TLS.Key = ca.issue(payments).Key }, "private key does not match"},
		{"not of the CA", access.Client, func(c *Config) { c.TLS.CA = newTestCA(t, testDomain).issue(payments).CA }, "not of tls.ca"},
		{"of another domain", access.Client, func(c *Config) { c.TLS.Domain = "grl.other" }, "trust domain"},
		{"of another role", access.Client, func(c *Config) { c.TLS = ca.issue(zone) }, "the role client needs one with /role/client"},
		{"of another zone", access.Client, func(c *Config) { c.Client.Zone = "eu2" }, `client.zone is "eu2"`},
		{"of another service", access.Client, func(c *Config) { c.Client.Service = "shop" }, `is "shop"`},
		{"of another caller", access.Client, func(c *Config) { c.Client.Caller = "shop" }, `is "shop"`},
		{"of another region", access.Controller, func(c *Config) { c.TLS = ca.issue(region); c.Controller.Region = "us" }, `controller.region is "us"`},
		{"controller with all below it", access.Aggregator, func(c *Config) { c.TLS = ca.issue(region) }, ""},
		{"expired, which ends no data plane", access.Client, func(c *Config) { c.TLS = ca.issueAt(payments, time.Now().Add(-time.Hour), time.Minute) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := right
			tt.change(&c)
			err := c.Validate(tt.role)
			if err == nil {
				_, err = openTLS(c, []string{tt.role}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
				if err != nil && !errors.Is(err, ErrUsage) {
					t.Errorf("%v is no wrong use", err)
				}
			}
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestExposed(t *testing.T) {
	ca := newTestCA(t, testDomain)
	c := tlsConfig(ca.issue(zone))
	c.Aggregator.Listen = "0.0.0.0:7071"
	if got := plainExposed(c, []string{access.Aggregator}); len(got) != 0 {
		t.Errorf("%v needs --insecure-i-know although it speaks TLS", got)
	}
	c.TLS = tlsfiles.Default()
	if got := plainExposed(c, []string{access.Aggregator}); len(got) != 1 || got[0].key != "aggregator.listen" {
		t.Errorf("%v is open in plain text, want aggregator.listen", got)
	}
}

// TestHealthcheckOverTLS asks a role that speaks TLS.
func TestHealthcheckOverTLS(t *testing.T) {
	ca := newTestCA(t, testDomain)
	address := run(t, tlsConfig(ca.issue(zone)), slog.DiscardHandler, access.Aggregator).at(t, "aggregator.listen")
	if err := checkHealth(t.Context(), "https://"+address); err != nil {
		t.Error(err)
	}
	if err := checkHealth(t.Context(), address); err == nil {
		t.Error("ready in plain text")
	}
}
