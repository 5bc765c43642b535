package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"
)

// Shown is a certificate in words.
type Shown struct {
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	CA          bool      `json:"ca"`
	URIs        []string  `json:"uris"` // the SPIFFE id
	Hosts       []string  `json:"hosts"`
	Begins      time.Time `json:"begins"`
	Ends        time.Time `json:"ends"`
	Serial      string    `json:"serial"`
	Fingerprint string    `json:"fingerprint"` // SHA-256
}

// Show returns the certificates of a PEM file.
func Show(file string) ([]Shown, error) {
	all, err := readCertificates(file)
	if err != nil {
		return nil, err
	}
	var shown []Shown
	for _, c := range all {
		shown = append(shown, show(c))
	}
	return shown, nil
}

func show(c *x509.Certificate) Shown {
	sum := sha256.Sum256(c.Raw)
	s := Shown{
		Subject: c.Subject.CommonName, Issuer: c.Issuer.CommonName, CA: c.IsCA,
		URIs: []string{}, Hosts: append([]string{}, c.DNSNames...),
		Begins: c.NotBefore.UTC(), Ends: c.NotAfter.UTC(),
		Serial: c.SerialNumber.Text(16), Fingerprint: hex.EncodeToString(sum[:]),
	}
	for _, u := range c.URIs {
		s.URIs = append(s.URIs, u.String())
	}
	for _, ip := range c.IPAddresses {
		s.Hosts = append(s.Hosts, ip.String())
	}
	return s
}
