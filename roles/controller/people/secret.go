package people

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// What a person shows instead of a password: `grl_ID_SECRET` for an API token,
// `grls_ID_SECRET` for a session, in hexadecimal, so that scanners for leaked
// secrets can know them.
const (
	tokenPrefix   = "grl"
	sessionPrefix = "grls"

	idBytes     = 8
	secretBytes = 32
)

// credential is a bearer taken apart.
type credential struct {
	session bool // else a token
	id      string
	secret  string
}

// newCredential returns one that nobody can guess.
func newCredential(session bool) credential {
	return credential{session: session, id: random(idBytes), secret: random(secretBytes)}
}

// parseCredential takes a bearer apart. What it does not take was not made here.
func parseCredential(bearer string) (c credential, ok bool) {
	parts := strings.Split(bearer, "_")
	if len(parts) != 3 || parts[0] != tokenPrefix && parts[0] != sessionPrefix {
		return credential{}, false
	}
	if !isHex(parts[1], idBytes) || !isHex(parts[2], secretBytes) {
		return credential{}, false
	}
	return credential{session: parts[0] == sessionPrefix, id: parts[1], secret: parts[2]}, true
}

// bearer is what the person keeps.
func (c credential) bearer() string {
	if c.session {
		return sessionPrefix + "_" + c.id + "_" + c.secret
	}
	return tokenPrefix + "_" + c.id + "_" + c.secret
}

// hash is what the ledger keeps.
func (c credential) hash() []byte { return hashOf(c.secret) }

// matches compares in constant time.
func (c credential) matches(hash []byte) bool {
	return subtle.ConstantTimeCompare(c.hash(), hash) == 1
}

// hashOf needs no salt and no slowness: a secret has 256 random bits.
func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// random returns n random bytes in hexadecimal.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b)
}

// isHex reports whether s is n bytes in lower-case hexadecimal.
func isHex(s string, n int) bool {
	if len(s) != 2*n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
