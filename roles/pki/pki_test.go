package pki

import (
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"grl/proto/access"
)

const (
	domain   = "grl.internal"
	leafLife = 192 * time.Hour
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) (dir string, a *Authority) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "ca")
	if err := Init(dir, domain, start); err != nil {
		t.Fatal(err)
	}
	return dir, open(t, dir)
}

func open(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issue returns the directory of a new certificate of an aggregator.
func issue(t *testing.T, a *Authority, now time.Time) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "leaf")
	r := Request{Node: access.Node{Role: access.Aggregator, Zone: "eu1"}, Hosts: []string{"agg.internal", "10.0.0.7", "::1"}, Life: leafLife}
	if err := a.Issue(dir, r, false, now); err != nil {
		t.Fatal(err)
	}
	return dir
}

func leaf(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	all, err := readCertificates(filepath.Join(dir, leafFile))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// holds reports whether the certificate in one directory is trusted by what
// another one holds.
func holds(t *testing.T, in, trustedBy string, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	all, err := readCertificates(filepath.Join(trustedBy, caFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		roots.AddCert(c)
	}
	for _, host := range []string{"agg.internal", "10.0.0.7", "[::1]"} {
		_, err := leaf(t, in).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestIssue(t *testing.T) {
	_, a := newAuthority(t)
	dir := issue(t, a, start)
	c := leaf(t, dir)
	n, err := access.OfCertificate(c, domain)
	if err != nil || n != (access.Node{Role: access.Aggregator, Zone: "eu1"}) {
		t.Errorf("certificate of %+v, %v", n, err)
	}
	if err := holds(t, dir, dir, start); err != nil {
		t.Error(err)
	}
	if life := c.NotAfter.Sub(start); life != leafLife {
		t.Errorf("holds for %v, want 192h", life)
	}
	if err := a.Issue(dir, Request{Node: n, Life: time.Hour}, false, start); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("second certificate in one directory: %v, want a refusal", err)
	}
	if err := a.Issue(dir, Request{Node: n, Life: time.Hour}, true, start); err != nil || leaf(t, dir).Equal(c) {
		t.Errorf("not replaced although asked to: %v", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir, a := newAuthority(t)
	for _, dir := range []string{dir, issue(t, a, start)} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefuses(t *testing.T) {
	dir, a := newAuthority(t)
	client := access.Node{Role: access.Client, Zone: "eu1", Service: "payments"}
	tests := []struct {
		name string
		do   func() error
		want string
	}{
		{"second CA in one directory", func() error { return Init(dir, domain, start) }, "is there already"},
		{"wrong domain", func() error { return Init(t.TempDir(), "Grl", start) }, "trust domain"},
		{"no CA", func() error { _, err := Open(t.TempDir()); return err }, "grl pki init"},
		{"client without a service", func() error {
			return a.Issue(t.TempDir(), Request{Node: access.Node{Role: access.Client, Zone: "eu1"}, Life: time.Hour}, false, start)
		}, "without /svc/"},
		{"name that a certificate cannot have", func() error {
			return a.Issue(t.TempDir(), Request{Node: access.Node{Role: access.Aggregator, Zone: "eu/1"}, Life: time.Hour}, false, start)
		}, "SPIFFE"},
		{"host with a port", func() error {
			return a.Issue(t.TempDir(), Request{Node: client, Life: time.Hour, Hosts: []string{"agg:7071"}}, false, start)
		}, "no port"},
		{"longer than the CA", func() error {
			return a.Issue(t.TempDir(), Request{Node: client, Life: 2 * caLife}, false, start)
		}, "after its CA"},
		{"too short", func() error {
			return a.Issue(t.TempDir(), Request{Node: client, Life: time.Second}, false, start)
		}, "at least 1m"},
		{"leaf instead of a CA", func() error {
			leafs := issue(t, a, start)
			if err := os.Rename(filepath.Join(leafs, leafFile), filepath.Join(leafs, caFile)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(leafs)
			return err
		}, "no CA of grl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestRotate turns the clock of two nodes for three years, with a rotation every
// other day, of one of them each fourth day only.
func TestRotate(t *testing.T) {
	dir, a := newAuthority(t)
	prompt, late := issue(t, a, start), issue(t, a, start)
	signers := map[string]bool{}
	for day := 0; day < 3*365; day += 2 {
		now := start.Add(time.Duration(day) * 24 * time.Hour)
		dirs := []string{prompt}
		if day%4 == 2 {
			dirs = append(dirs, late)
		}
		if _, err := open(t, dir).Rotate(dirs, false, now); err != nil {
			t.Fatalf("day %d: %v", day, err)
		}
		for _, pair := range [][2]string{{prompt, late}, {late, prompt}} {
			if err := holds(t, pair[0], pair[1], now); err != nil {
				t.Fatalf("day %d: the certificate of one node does not hold at the other: %v", day, err)
			}
		}
		signers[string(leaf(t, prompt).AuthorityKeyId)] = true
	}
	if len(signers) < 4 {
		t.Errorf("%d CAs signed in three years, want at least 4", len(signers))
	}
}

func TestRotateByHand(t *testing.T) {
	dir, a := newAuthority(t)
	leafs := issue(t, a, start)
	if did, err := a.Rotate([]string{leafs}, false, start.Add(time.Hour)); err != nil || len(did) != 0 {
		t.Errorf("did %q, %v an hour after all was made, want nothing", did, err)
	}
	first := leaf(t, leafs)
	did, err := a.Rotate([]string{leafs}, true, start.Add(time.Hour))
	if err != nil || len(did) != 2 || !strings.Contains(did[0], "trusts both") || !strings.Contains(did[1], caFile) {
		t.Fatalf("first step: %q, %v", did, err)
	}
	if !leaf(t, leafs).Equal(first) {
		t.Error("the first step issued a certificate anew")
	}
	did, err = open(t, dir).Rotate([]string{leafs}, true, start.Add(2*time.Hour))
	if err != nil || len(did) != 2 || !strings.Contains(did[0], "signs from now on") {
		t.Fatalf("second step: %q, %v", did, err)
	}
	c := leaf(t, leafs)
	if c.CheckSignatureFrom(open(t, dir).trusted[0]) != nil || !slices.Equal(c.DNSNames, first.DNSNames) || c.URIs[0].String() != first.URIs[0].String() {
		t.Error("the second step did not issue the same certificate by the new CA")
	}
}

// TestOpensAfterAKill stands for a kill between the two files that make the next
// CA the one that signs.
func TestOpensAfterAKill(t *testing.T) {
	dir, a := newAuthority(t)
	if _, err := a.Rotate(nil, true, start); err != nil {
		t.Fatal(err)
	}
	a.trusted[0], a.trusted[1] = a.trusted[1], a.trusted[0]
	if err := writeCertificates(filepath.Join(dir, caFile), a.trusted); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if again.nextKey != nil {
		t.Error("the old CA counts as the next one")
	}
	leafs := issue(t, again, start)
	if err := holds(t, leafs, leafs, start); err != nil {
		t.Error(err)
	}
}

func TestShow(t *testing.T) {
	_, a := newAuthority(t)
	dir := issue(t, a, start)
	shown, err := Show(filepath.Join(dir, leafFile))
	if err != nil || len(shown) != 1 {
		t.Fatalf("%d certificates, %v", len(shown), err)
	}
	s := shown[0]
	if s.CA || !slices.Equal(s.URIs, []string{"spiffe://grl.internal/role/aggregator/zone/eu1"}) ||
		!slices.Equal(s.Hosts, []string{"agg.internal", "10.0.0.7", "::1"}) || !s.Ends.Equal(start.Add(leafLife)) {
		t.Errorf("shows %+v", s)
	}
}
