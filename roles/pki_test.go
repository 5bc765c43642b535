package roles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"grl/proto/access"
	"grl/proto/tlsfiles"
	"grl/roles/pki"
)

const testDomain = "grl.test"

// testCA is a CA of the tests' fleet, in a directory as grl pki makes it.
type testCA struct {
	t   *testing.T
	dir string
}

func newTestCA(t *testing.T, domain string) testCA {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	if err := pki.Init(dir, domain, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	return testCA{t, dir}
}

// issue returns the section [tls] of a node of this machine.
func (ca testCA) issue(n access.Node) tlsfiles.Config {
	ca.t.Helper()
	return ca.issueAt(n, time.Now(), time.Hour, "127.0.0.1")
}

func (ca testCA) issueAt(n access.Node, now time.Time, life time.Duration, hosts ...string) tlsfiles.Config {
	ca.t.Helper()
	a, err := pki.Open(ca.dir)
	if err != nil {
		ca.t.Fatal(err)
	}
	dir := filepath.Join(ca.t.TempDir(), "node")
	if err := a.Issue(dir, pki.Request{Node: n, Hosts: hosts, Life: life}, false, now); err != nil {
		ca.t.Fatal(err)
	}
	return filesIn(dir, a.Domain())
}

func filesIn(dir, domain string) tlsfiles.Config {
	return tlsfiles.Config{
		Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem"),
		Domain: domain,
	}
}

// load returns the certificate of a section [tls].
func load(t *testing.T, c tlsfiles.Config) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (ca testCA) pool() *x509.CertPool {
	ca.t.Helper()
	text, err := os.ReadFile(filepath.Join(ca.dir, "ca.pem"))
	if err != nil {
		ca.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

// sign returns a certificate by this CA with these URIs, which grl pki would not
// issue.
func (ca testCA) sign(uris ...string) tls.Certificate {
	ca.t.Helper()
	text, err := os.ReadFile(filepath.Join(ca.dir, "ca-key.pem"))
	if err != nil {
		ca.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		ca.t.Fatal(err)
	}
	text, err = os.ReadFile(filepath.Join(ca.dir, "ca.pem"))
	if err != nil {
		ca.t.Fatal(err)
	}
	block, _ = pem.Decode(text)
	parent, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		ca.t.Fatal(err)
	}
	return signed(ca.t, parent, key.(*ecdsa.PrivateKey), uris...)
}

// signed returns a certificate by parent, by itself if parent is nil.
func signed(t *testing.T, parent *x509.Certificate, by *ecdsa.PrivateKey, uris ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
	}
	for _, u := range uris {
		uri, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// run starts roles with a configuration, each at a free port of 127.0.0.1, until
// the test ends.
func run(t *testing.T, c Config, log slog.Handler, names ...string) *process {
	t.Helper()
	c.Client.Admin, c.Client.Listen, c.Aggregator.Listen, c.Controller.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.Controller.DB = filepath.Join(t.TempDir(), "db")
	if err := c.Validate(names...); err != nil {
		t.Fatal(err)
	}
	p, err := start(t.Context(), c, Options{Roles: names, Log: slog.New(log), Level: new(slog.LevelVar), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.drain(); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return p
}

// at returns the address at which a process listens for a key.
func (p *process) at(t *testing.T, key string) string {
	t.Helper()
	for _, n := range p.nodes {
		for _, s := range n.servers {
			if s.key == key {
				return s.open.Addr().String()
			}
		}
	}
	t.Fatalf("nothing listens for %s", key)
	return ""
}
