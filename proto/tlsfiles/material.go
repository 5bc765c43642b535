package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"grl/proto/access"
)

// maxFile bounds each file; a hundred certificates fit in it.
const maxFile = 1 << 20

// material is what the files held at one moment. It is immutable.
type material struct {
	texts [3][]byte // of cert, key and CA

	certificate tls.Certificate
	trusted     *x509.CertPool
	node        access.Node
	begins      time.Time // of the certificate
	ends        time.Time
	caEnds      time.Time // of the CA that the certificate is of
}

// read returns what the files of c hold now, or last if they still hold the
// same. It returns an error if they do not belong together, or name no node of
// the domain; a certificate that has expired is no error.
func read(c Config, last *material) (*material, error) {
	var m material
	for i, f := range []string{c.Cert, c.Key, c.CA} {
		text, err := readFile(f)
		if err != nil {
			return nil, err
		}
		m.texts[i] = text
	}
	if last != nil && sameTexts(m.texts, last.texts) {
		return last, nil
	}
	var err error
	if m.certificate, err = tls.X509KeyPair(m.texts[0], m.texts[1]); err != nil {
		return nil, fmt.Errorf("tls.cert %s with tls.key %s: %w", c.Cert, c.Key, err)
	}
	m.trusted = x509.NewCertPool()
	if !m.trusted.AppendCertsFromPEM(m.texts[2]) {
		return nil, fmt.Errorf("tls.ca %s: no certificate in it", c.CA)
	}
	if err := m.check(c.Domain); err != nil {
		return nil, fmt.Errorf("tls.cert %s: %w", c.Cert, err)
	}
	return &m, nil
}

// check returns what keeps the certificate from being that of a node, and takes
// in what it says.
func (m *material) check(domain string) error {
	leaf := m.certificate.Leaf
	m.begins, m.ends = leaf.NotBefore, leaf.NotAfter
	var err error
	if m.node, err = access.OfCertificate(leaf, domain); err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, der := range m.certificate.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("certificate after the first: %w", err)
		}
		between.AddCert(c)
	}
	var chains [][]*x509.Certificate
	// Whether it has expired is another question: at some time it holds.
	for _, at := range []time.Time{time.Now(), leaf.NotBefore, leaf.NotAfter} {
		chains, err = leaf.Verify(x509.VerifyOptions{
			Roots: m.trusted, Intermediates: between, CurrentTime: at,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		if err == nil {
			m.caEnds = chains[0][len(chains[0])-1].NotAfter
			return nil
		}
	}
	return fmt.Errorf("not of tls.ca: %w", err)
}

func sameTexts(a, b [3][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

var errTooLong = errors.New("longer than 1 MiB")

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("read %s: %w", name, errTooLong)
	}
	return text, err
}
