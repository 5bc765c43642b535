package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Bounds of a password, in characters.
const (
	MinPassword = 12
	MaxPassword = 256
)

// Parameters of argon2id: the first ones that OWASP's password storage cheat
// sheet recommends.
const (
	hashKiB     = 19 << 10
	hashPasses  = 2
	hashThreads = 1
	saltBytes   = 16
	hashBytes   = 32

	// What is accepted of a stored one, so that a record that was tampered with
	// cannot take the memory.
	mostKiB     = 256 << 10
	mostPasses  = 16
	mostThreads = 4
)

// HashesAtOnce is how many passwords are hashed at the same time, which bounds
// the memory that logins take; HashesWaiting how many more may wait.
const (
	HashesAtOnce  = 2
	HashesWaiting = 32
)

// nobodysHash is well formed and matches no password. It is checked where there
// is no account, so that the time of an answer does not tell.
var nobodysHash = encodeHash(make([]byte, saltBytes), make([]byte, hashBytes))

// hasher hashes passwords, a few at once.
type hasher struct {
	running, waiting chan struct{}
}

func newHasher() *hasher {
	return &hasher{
		running: make(chan struct{}, HashesAtOnce),
		waiting: make(chan struct{}, HashesAtOnce+HashesWaiting),
	}
}

// enter waits for a turn; the caller calls leave. It returns errBusy where too
// many wait already.
func (h *hasher) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.waiting <- struct{}{}:
	default:
		return nil, errBusy
	}
	select {
	case h.running <- struct{}{}:
		return func() { <-h.running; <-h.waiting }, nil
	case <-ctx.Done():
		<-h.waiting
		return nil, ctx.Err()
	}
}

// hash returns password as it is stored, in PHC form.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails: crypto/rand ends the process instead
	return encodeHash(salt, argon2.IDKey([]byte(password), salt, hashPasses, hashKiB, hashThreads, hashBytes)), nil
}

// verify reports whether password is the one that was stored. An error says that
// it could not be told.
func (h *hasher) verify(ctx context.Context, stored, password string) (bool, error) {
	s, err := decodeHash(stored)
	if err != nil {
		return false, err
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	key := argon2.IDKey([]byte(password), s.salt, s.passes, s.kib, s.threads, uint32(len(s.key)))
	return subtle.ConstantTimeCompare(key, s.key) == 1, nil
}

// storedHash is a stored password taken apart.
type storedHash struct {
	kib, passes uint32
	threads     uint8
	salt, key   []byte
}

func encodeHash(salt, key []byte) string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, hashKiB, hashPasses, hashThreads, b.EncodeToString(salt), b.EncodeToString(key))
}

var errStoredHash = errors.New("stored password is not argon2id in PHC form")

// decodeHash takes a stored password apart. Its error quotes nothing of it.
func decodeHash(stored string) (storedHash, error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return storedHash{}, errStoredHash
	}
	var s storedHash
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &s.kib, &s.passes, &s.threads); err != nil {
		return storedHash{}, errStoredHash
	}
	var errSalt, errKey error
	s.salt, errSalt = base64.RawStdEncoding.DecodeString(parts[4])
	s.key, errKey = base64.RawStdEncoding.DecodeString(parts[5])
	if errSalt != nil || errKey != nil || !s.reasonable() {
		return storedHash{}, errStoredHash
	}
	return s, nil
}

func (s storedHash) reasonable() bool {
	return s.kib >= 8 && s.kib <= mostKiB && s.passes >= 1 && s.passes <= mostPasses &&
		s.threads >= 1 && s.threads <= mostThreads &&
		len(s.salt) >= 8 && len(s.salt) <= 64 && len(s.key) >= 16 && len(s.key) <= 64
}

// checkPassword returns what keeps password from being one.
func checkPassword(password string) error {
	if !utf8.ValidString(password) {
		return invalid("the password is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword {
		return invalid("a password has %d to %d characters; this one has %d", MinPassword, MaxPassword, n)
	}
	return nil
}
