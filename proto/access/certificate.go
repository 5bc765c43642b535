package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

var (
	errNoCertificate = errors.New("no client certificate")
	errOldTLS        = errors.New("TLS 1.2: nodes speak TLS 1.3")
)

// OfConnection returns the node at the other end of a connection, in a trust
// domain, by its verified certificate. It returns an error if there is none, or
// if the connection is older than TLS 1.3.
func OfConnection(state *tls.ConnectionState, domain string) (Node, error) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return Node{}, errNoCertificate
	}
	if state.Version < tls.VersionTLS13 {
		return Node{}, errOldTLS
	}
	return OfCertificate(state.VerifiedChains[0][0], domain)
}

// OfCertificate returns the node that a certificate names by its one URI. Who
// calls it has verified the certificate.
func OfCertificate(c *x509.Certificate, domain string) (Node, error) {
	if len(c.URIs) != 1 {
		return Node{}, fmt.Errorf("certificate with %d URIs, not with one SPIFFE id", len(c.URIs))
	}
	in, n, err := ParseID(c.URIs[0].String())
	switch {
	case err != nil:
		return Node{}, err
	case in != domain:
		return Node{}, fmt.Errorf("certificate of trust domain %q, not %q", in, domain)
	}
	return n, nil
}
