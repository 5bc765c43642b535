package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"grl/proto/access"
)

// settle is how long everyone has to take in that a new CA is trusted before it
// signs.
const settle = 24 * time.Hour

// Rotate does what is due, or the next step of a change of the CA at once if
// force is set, and returns in words what it did; nothing if nothing was due. A
// change has two steps, so that no node meets a certificate of a CA that it does
// not know:
//
//  1. when a third of the life of the CA is left, a new one is made, and trusted
//     beside it;
//  2. a day later the new one signs. The old one stays trusted until the next
//     change.
//
// The certificates of nodes in dirs are issued anew, with new keys, once half of
// their life is over or another CA signs; their copies of what is trusted are
// renewed in any case.
func (a *Authority) Rotate(dirs []string, force bool, now time.Time) ([]string, error) {
	var did []string
	step, err := a.rotateCA(force, now)
	if err != nil {
		return nil, fmt.Errorf("rotate CA: %w", err)
	}
	if step != "" {
		did = append(did, step)
	}
	for _, dir := range dirs {
		word, err := a.renew(dir, now)
		if err != nil {
			return did, fmt.Errorf("rotate %s: %w", dir, err)
		}
		if word != "" {
			did = append(did, word)
		}
	}
	return did, nil
}

func (a *Authority) rotateCA(force bool, now time.Time) (string, error) {
	signs := a.trusted[0]
	switch {
	case a.nextKey == nil:
		if left := signs.NotAfter.Sub(now); !force && left > caLife/3 {
			return "", nil
		}
		next, key, err := newCA(a.domain, now)
		if err != nil {
			return "", err
		}
		a.nextKey, a.trusted = key, []*x509.Certificate{signs, next}
		if err := a.write(); err != nil {
			return "", err
		}
		return fmt.Sprintf("made a new CA, until %s: %s trusts both; the old one signs until every node has that file",
			stamp(next.NotAfter), filepath.Join(a.dir, caFile)), nil
	default:
		next := a.trusted[1]
		if !force && now.Sub(next.NotBefore) < settle {
			return "", nil
		}
		return a.promote(next)
	}
}

// promote makes the next CA the one that signs.
func (a *Authority) promote(next *x509.Certificate) (string, error) {
	a.key, a.nextKey = a.nextKey, nil
	a.trusted = []*x509.Certificate{next, a.trusted[0]}
	// In this order, so that Open finds the key after a kill between the two.
	if err := writeCertificates(filepath.Join(a.dir, caFile), a.trusted); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(a.dir, nextKeyFile), filepath.Join(a.dir, keyFile)); err != nil {
		return "", err
	}
	return fmt.Sprintf("the new CA signs from now on, until %s; the old one stays trusted", stamp(next.NotAfter)), nil
}

// renew issues the certificate in dir anew if that is due, and renews what is
// trusted there.
func (a *Authority) renew(dir string, now time.Time) (string, error) {
	file := filepath.Join(dir, leafFile)
	all, err := readCertificates(file)
	if err != nil {
		return "", err
	}
	old := all[0]
	node, err := access.OfCertificate(old, a.domain)
	if err != nil {
		return "", err
	}
	life := old.NotAfter.Sub(old.NotBefore) - skew
	if now.Before(old.NotBefore.Add(life/2)) && old.CheckSignatureFrom(a.trusted[0]) == nil {
		return a.renewTrust(dir)
	}
	hosts := append([]string{}, old.DNSNames...)
	for _, ip := range old.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	c, key, err := a.sign(Request{Node: node, Hosts: hosts, Life: life}, now)
	if err != nil {
		return "", err
	}
	if err := a.writeLeaf(dir, c, key); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %s: %s, until %s", file, node, stamp(c.NotAfter)), nil
}

// renewTrust makes the copy of what is trusted in dir that of a.
func (a *Authority) renewTrust(dir string) (string, error) {
	file := filepath.Join(dir, caFile)
	held, err := readCertificates(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	same := len(held) == len(a.trusted)
	for i := range held {
		same = same && held[i].Equal(a.trusted[i])
	}
	if same {
		return "", nil
	}
	return "replaced " + file, writeCertificates(file, a.trusted)
}
