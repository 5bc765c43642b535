package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"grl/proto/access"
)

// Files of a node's directory, as the keys of [tls] name them. ca.pem is a copy
// of the CA's.
const (
	leafFile    = "cert.pem"
	leafKeyFile = "key.pem"
)

// Request says which certificate is wanted.
type Request struct {
	Node  access.Node
	Hosts []string // names and IP addresses under which others dial it
	// Life is how long it holds, at least a minute and within that of the CA.
	Life time.Duration
}

// Issue writes the certificate and key of a node into dir, which is created if
// missing, with a copy of what is trusted. It returns an error if dir has a
// certificate already, unless replace is set.
func (a *Authority) Issue(dir string, r Request, replace bool, now time.Time) error {
	for _, name := range []string{leafFile, leafKeyFile} {
		file := filepath.Join(dir, name)
		if _, err := os.Lstat(file); err == nil && !replace {
			return fmt.Errorf("issue certificate: %s is there already", file)
		}
	}
	c, key, err := a.sign(r, now)
	if err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return a.writeLeaf(dir, c, key)
}

// writeLeaf writes what a node needs, what it trusts first: its peers may have
// certificates of the next CA already.
func (a *Authority) writeLeaf(dir string, c *x509.Certificate, key *ecdsa.PrivateKey) error {
	if err := writeCertificates(filepath.Join(dir, caFile), a.trusted); err != nil {
		return err
	}
	if err := writeKey(filepath.Join(dir, leafKeyFile), key); err != nil {
		return err
	}
	return writeCertificates(filepath.Join(dir, leafFile), []*x509.Certificate{c})
}

// sign returns a new certificate with its key.
func (a *Authority) sign(r Request, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	id, err := r.Node.ID(a.domain)
	if err != nil {
		return nil, nil, err
	}
	uri, err := url.Parse(id)
	if err != nil {
		return nil, nil, err
	}
	ca := a.trusted[0]
	if r.Life < time.Minute {
		return nil, nil, fmt.Errorf("life of %v, at least 1m", r.Life)
	}
	if end := now.Add(r.Life); end.After(ca.NotAfter) {
		return nil, nil, fmt.Errorf("it would end at %s, after its CA at %s: shorten it, or see grl pki rotate", stamp(end), stamp(ca.NotAfter))
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: commonName(r.Node)},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(r.Life),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		URIs:         []*url.URL{uri},
	}
	if template.DNSNames, template.IPAddresses, err = splitHosts(r.Hosts); err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	c, err := x509.ParseCertificate(der)
	return c, key, err
}

// commonName is what people see first; nothing goes by it. It has at most 64
// bytes.
func commonName(n access.Node) string {
	name := n.String()
	return name[:min(len(name), 64)]
}

// splitHosts tells IP addresses from names, which are checked.
func splitHosts(hosts []string) (names []string, addresses []net.IP, err error) {
	var errs []error
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			addresses = append(addresses, ip)
			continue
		}
		if !hostName(h) {
			errs = append(errs, fmt.Errorf("host %q is neither a name nor an IP address; no port belongs to it", h))
			continue
		}
		names = append(names, h)
	}
	return names, addresses, errors.Join(errs...)
}

// hostName reports whether s is a DNS name, perhaps with * as its first label.
func hostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i, label := range strings.Split(s, ".") {
		if i == 0 && label == "*" && strings.Contains(s, ".") {
			continue
		}
		if label == "" || len(label) > 63 {
			return false
		}
		for j := range len(label) {
			c := label[j]
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
