package main

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grl/roles/command"
)

// secured makes f's members speak TLS with certificates of a CA of its own, and
// returns the directories of the certificates, by member.
func (f *fleet) secured() (ca string, dirs map[*member]string) {
	f.t.Helper()
	ca, dirs = filepath.Join(f.t.TempDir(), "ca"), map[*member]string{}
	f.pki("init", "--dir", ca)
	for _, m := range f.members() {
		dir := filepath.Join(m.dir, "tls")
		f.issue(m, ca, dir)
		dirs[m] = dir
		m.args = append(m.args, "--tls.cert", filepath.Join(dir, "cert.pem"), "--tls.key", filepath.Join(dir, "key.pem"), "--tls.ca", filepath.Join(dir, "ca.pem"))
	}
	return ca, dirs
}

// issue issues the certificate of a member.
func (f *fleet) issue(m *member, ca, dir string, args ...string) {
	f.t.Helper()
	role, zone, of := strings.Cut(m.name, " of ")
	if !of {
		zone = "local"
	}
	args = append([]string{"issue", "--dir", ca, "--zone", zone, "--out", dir}, args...)
	switch role {
	case "sidecar":
		args = append(args, "--role", "client", "--svc", "shop")
	default:
		args = append(args, "--role", role, "--host", "127.0.0.1")
	}
	f.pki(args...)
}

func (f *fleet) pki(args ...string) {
	f.t.Helper()
	if out, err := grl(f.t, f.t.TempDir(), append([]string{"pki"}, args...)...).CombinedOutput(); err != nil {
		f.t.Fatalf("grl pki %v: %v\n%s", args, err, out)
	}
}

// TestFaultOfCertificates changes the certificates of all nodes, and the CA,
// under load, and lets some expire. No request fails for it.
func TestFaultOfCertificates(t *testing.T) {
	f := emptyFleet(t)
	f.scheme = "https"
	write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(faultLimit))
	f.addController("--controller.db", f.db, "--controller.limits", f.limits)
	f.add([]zoneSize{{1, 2}, {1, 1}}, nil)
	ca, dirs := f.secured()
	// One of them has a certificate that ends at once, and one that is another's.
	brief, wrong := f.sidecars[1], f.sidecars[2]
	const briefly = 8 * time.Second
	shorten(t, ca, dirs[brief], briefly)
	other := filepath.Join(t.TempDir(), "other")
	f.pki("init", "--dir", other)
	f.issue(wrong, other, dirs[wrong], "--replace")
	f.start()
	issued := time.Now()
	f.refusesRole(t, dirs[f.sidecars[0]])
	began := time.Now()
	l, _ := f.load(calm)
	f.answers(t, f.sidecars[:2], 1)
	if answers := wrong.must("grl_client_aggregator_answers"); answers != 0 {
		t.Error("an aggregator answers a client with a certificate of another CA")
	}
	l.unhurt("start with certificates", began, -1, began)

	f.issue(wrong, ca, dirs[wrong], "--replace")
	f.answers(t, f.sidecars, 1)
	l.holds("certificate repaired", time.Now(), faultLimit, back)

	// New leaves, then both steps of a change of the CA.
	all, issuedAnew := []string{}, time.Now()
	for _, m := range f.members() {
		if m != brief {
			f.issue(m, ca, dirs[m], "--replace")
			all = append(all, dirs[m])
		}
	}
	f.reloaded(t, brief, issuedAnew)
	for range 2 {
		rotated := time.Now()
		f.pki(append([]string{"rotate", "--dir", ca, "--ca"}, all...)...)
		f.reloaded(t, brief, rotated)
	}
	l.holds("certificates changed", time.Now(), faultLimit, back)

	// From here on nodes meet with the new ones; the brief one is dead.
	pause(time.Until(issued.Add(briefly + time.Second)))
	lost := time.Now()
	for _, m := range f.controlPlane() {
		m.kill()
		m.restart()
	}
	f.answers(t, []*member{f.sidecars[0], wrong}, 1)
	pause(time.Until(lost.Add(steady)))
	if answers := brief.must("grl_client_aggregator_answers"); answers != 0 {
		t.Error("an aggregator answers a client whose certificate has expired")
	}
	l.unhurt("certificates changed and expired", began, -1, began)
	if dropped := count(l.through(lost, time.Now()), http.StatusTooManyRequests); dropped == 0 {
		t.Error("nothing was dropped with the new certificates")
	}
}

// refusesRole checks that an aggregator does not start with the certificate of a
// client.
func (f *fleet) refusesRole(t *testing.T, dir string) {
	t.Helper()
	file := func(name string) string { return filepath.Join(dir, name) }
	out, err := grl(t, dir, "serve", "--role", "aggregator", "--aggregator.listen", "127.0.0.1:0", "--aggregator.controllers", f.controller.url(),
		"--tls.cert", file("cert.pem"), "--tls.key", file("key.pem"), "--tls.ca", file("ca.pem")).CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.ExitCode() != command.ExitWrongUse || !strings.Contains(string(out), "tls.cert") {
		t.Errorf("an aggregator with the certificate of a client: %v\n%s", err, out)
	}
}

// shorten makes the certificate in dir end after life, which is less than grl
// issues.
func shorten(t *testing.T, ca, dir string, life time.Duration) {
	t.Helper()
	leaf, authority := readCertificate(t, filepath.Join(dir, "cert.pem")), readCertificate(t, filepath.Join(ca, "ca.pem"))
	key, err := x509.ParsePKCS8PrivateKey(readPEM(t, filepath.Join(ca, "ca-key.pem")))
	if err != nil {
		t.Fatal(err)
	}
	leaf.NotAfter = time.Now().Add(life)
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, leaf.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func readCertificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(readPEM(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readPEM returns what the first block of a file holds.
func readPEM(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no PEM", file)
	}
	return block.Bytes
}

// answers waits until an aggregator answers these sidecars, or does not.
func (f *fleet) answers(t *testing.T, sidecars []*member, want float64) {
	t.Helper()
	for _, m := range sidecars {
		eventually(t, "an aggregator answers a "+m.name, func() bool { return m.must("grl_client_aggregator_answers") == want })
	}
}

// reloaded waits until all members but one have taken up their certificates
// since then.
func (f *fleet) reloaded(t *testing.T, but *member, since time.Time) {
	t.Helper()
	for _, m := range f.members() {
		eventually(t, "a "+m.name+" takes up its certificate", func() bool { return m == but || m.last("reloaded certificate").After(since) })
	}
}
