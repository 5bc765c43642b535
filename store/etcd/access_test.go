package etcd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"grl/store"
	"grl/store/etcd"
	"grl/store/storetest"
)

// wantWorks uses an engine in all ways that open a request of their own.
func wantWorks(t *testing.T, o etcd.Options) {
	t.Helper()
	e, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	changed := e.Changed(t.Context(), "a")
	if err := e.Commit(t.Context(), nil, set("a", "1")); err != nil {
		t.Error(err)
	}
	awaitRecord(t, e, changed, "a", "1")
	l := mustLead(t, e)
	if isLost(l) {
		t.Error("leadership is lost at once")
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantRefused also wants a word in the error.
func wantRefused(t *testing.T, o etcd.Options, word string) {
	t.Helper()
	e, err := etcd.Open(t.Context(), o)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), word) {
		t.Errorf("Open: %v, want ErrUnavailable and %q", err, word)
	}
	if e != nil {
		t.Error("Open returned an engine", e.Close())
	}
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, pool := selfSigned(t, dir)
	port := storetest.FreePorts(t, 1)[0]
	url := fmt.Sprintf("https://127.0.0.1:%d", port)
	storetest.StartEtcd(t, 1, "--listen-client-urls", "{client},"+url, "--advertise-client-urls", "{client},"+url,
		"--cert-file", filepath.Join(dir, "cert.pem"), "--key-file", filepath.Join(dir, "key.pem"),
		"--client-cert-auth", "--trusted-ca-file", filepath.Join(dir, "cert.pem"))
	with := func(c *tls.Config) etcd.Options { return etcd.Options{Endpoints: []string{url}, TLS: c} }
	wantWorks(t, with(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	wantRefused(t, with(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}), "")                                                                                                    // no certificate of ours
	wantRefused(t, with(&tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}), "certificate signed by unknown authority") // not theirs
}

// selfSigned makes a certificate that is its own authority, for both sides, and
// writes it into dir.
func selfSigned(t *testing.T, dir string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "cert.pem"), public, 0o600), os.WriteFile(filepath.Join(dir, "key.pem"), secret, 0o600)); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(public, secret)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return pair, pool
}

func TestPassword(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1)
	admin, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	_, add := admin.UserAdd(t.Context(), "root", "secret")
	_, role := admin.RoleAdd(t.Context(), "root")
	_, grant := admin.UserGrantRole(t.Context(), "root", "root")
	_, grl := admin.UserAdd(t.Context(), "grl", "password")
	_, grlRole := admin.RoleAdd(t.Context(), "grl")
	_, permission := admin.RoleGrantPermission(t.Context(), "grl", "grl/", clientv3.GetPrefixRangeEnd("grl/"), clientv3.PermissionType(clientv3.PermReadWrite))
	_, grlGrant := admin.UserGrantRole(t.Context(), "grl", "grl")
	_, enable := admin.AuthEnable(t.Context())
	if err := errors.Join(add, role, grant, grl, grlRole, permission, grlGrant, enable); err != nil {
		t.Fatal(err)
	}
	with := func(user, password, prefix string) etcd.Options {
		return etcd.Options{Endpoints: cluster.Endpoints(), Username: user, Password: password, Prefix: prefix}
	}
	wantWorks(t, with("grl", "password", ""))
	wantRefused(t, with("grl", "wrong", ""), "authentication failed")
	wantRefused(t, with("", "", ""), "user name is empty")
	wantRefused(t, with("grl", "password", "theirs/"), "permission denied")
}
