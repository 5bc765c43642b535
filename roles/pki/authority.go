// Package pki makes the certificates of a fleet that has no CA of its own: a
// small CA in a directory, and the certificates of nodes, each in one.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"grl/proto/access"
)

const (
	// caLife is that of a CA.
	caLife = 365 * 24 * time.Hour
	// skew is how far the clocks of two machines may differ before a new
	// certificate is one from the future.
	skew = time.Minute
)

// Files of a CA's directory. ca.pem holds all that is trusted, first the one that
// signs; the key of the one that will sign next waits beside.
const (
	caFile      = "ca.pem"
	keyFile     = "ca-key.pem"
	nextKeyFile = "ca-next-key.pem"
)

// Authority is a CA in a directory. Create one with Init, read one with Open.
type Authority struct {
	dir     string
	domain  string
	trusted []*x509.Certificate // the first signs
	key     *ecdsa.PrivateKey
	nextKey *ecdsa.PrivateKey // of trusted[1]; nil: there is none
}

// Init makes a CA for a trust domain in dir, which is created if missing. It
// returns an error if there is one already.
func Init(dir, domain string, now time.Time) error {
	if err := access.CheckDomain(domain); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{caFile, keyFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("make CA: %s is there already", filepath.Join(dir, name))
		}
	}
	c, key, err := newCA(domain, now)
	if err != nil {
		return fmt.Errorf("make CA: %w", err)
	}
	a := &Authority{dir: dir, domain: domain, trusted: []*x509.Certificate{c}, key: key}
	return a.write()
}

// newCA returns a new CA, which signs itself.
func newCA(domain string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "grl CA of " + domain},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(caLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		URIs:                  []*url.URL{{Scheme: "spiffe", Host: domain}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	c, err := x509.ParseCertificate(der)
	return c, key, err
}

// serial returns a random number that no two certificates share.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[0] &= 0x7f           // positive
	return new(big.Int).SetBytes(b[:])
}

// Open reads the CA in dir.
func Open(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	var err error
	if a.trusted, err = readCertificates(filepath.Join(dir, caFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read CA: there is none in %s; make one with grl pki init --dir %s", dir, dir)
		}
		return nil, fmt.Errorf("read CA: %w", err)
	}
	c := a.trusted[0]
	if len(c.URIs) != 1 || c.URIs[0].Scheme != "spiffe" || c.URIs[0].Path != "" {
		return nil, fmt.Errorf("read CA: the first certificate of %s names no trust domain, so it is no CA of grl", filepath.Join(dir, caFile))
	}
	a.domain = c.URIs[0].Host
	if a.key, err = a.keyOf(c, keyFile, nextKeyFile); err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	if len(a.trusted) > 1 {
		a.nextKey, _ = a.keyOf(a.trusted[1], nextKeyFile) // an error: there is none
	}
	return a, nil
}

// keyOf returns the private key of a certificate out of the first file that has
// it: a kill while the next CA takes over leaves it in the second one.
func (a *Authority) keyOf(c *x509.Certificate, names ...string) (*ecdsa.PrivateKey, error) {
	var errs []error
	for _, name := range names {
		file := filepath.Join(a.dir, name)
		key, err := readKey(file)
		switch {
		case err != nil:
			errs = append(errs, err)
		case key.PublicKey.Equal(c.PublicKey):
			return key, nil
		default:
			errs = append(errs, fmt.Errorf("%s is not the key of the first certificate in %s", file, filepath.Join(a.dir, caFile)))
		}
	}
	return nil, errs[0]
}

// write writes all files of a, keys first: a certificate without its key would
// be of no use.
func (a *Authority) write() error {
	if a.nextKey != nil {
		if err := writeKey(filepath.Join(a.dir, nextKeyFile), a.nextKey); err != nil {
			return err
		}
	}
	if err := writeKey(filepath.Join(a.dir, keyFile), a.key); err != nil {
		return err
	}
	return writeCertificates(filepath.Join(a.dir, caFile), a.trusted)
}

// Domain returns the trust domain of a.
func (a *Authority) Domain() string { return a.domain }
