package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// readCertificates returns the certificates of a PEM file, at least one.
func readCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != pemCertificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read %s: no certificate in it", file)
	}
	return all, nil
}

func writeCertificates(file string, all []*x509.Certificate) error {
	var text bytes.Buffer
	for _, c := range all {
		_ = pem.Encode(&text, &pem.Block{Type: pemCertificate, Bytes: c.Raw}) // a buffer takes all
	}
	return replace(file, text.Bytes())
}

func readKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemKey {
		return nil, fmt.Errorf("read %s: no private key in it", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	of, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read %s: a %T, not an ECDSA key", file, key)
	}
	return of, nil
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return replace(file, pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}))
}

// replace writes a file that only its owner reads, whole or not at all.
func replace(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use to anybody
	}
	return err
}
