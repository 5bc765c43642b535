// Package webhook hears from the host of the limits repository that something
// was pushed. What it says is not trusted: it only makes the configurator look.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Path is where calls go.
const Path = "/hooks/repository"

const (
	maxBody   = 1 << 20 // bytes of a call
	minSecret = 16      // bytes
	maxSecret = 4096    // bytes of the file
	// burst calls may come at once, and perSecond in the long run, whoever they
	// are of. What is refused costs nothing but a wait for the next poll.
	burst     = 20
	perSecond = 5
	// readWithin is how long the body of a call may take.
	readWithin = 10 * time.Second
)

// Options says what a webhook proves calls by, and whom it tells.
type Options struct {
	// SecretFile holds the secret, at least 16 bytes, read anew for each call;
	// empty: there is no webhook. Space around the secret does not count.
	SecretFile string
	Log        *slog.Logger
	// Notify is called, from the goroutine of a call, after each that proved
	// itself.
	Notify func()
}

// New returns the handler of POST Path: as GitHub and Gitea sign, with
// X-Hub-Signature-256, or as GitLab does, with X-Gitlab-Token. It answers 202 to
// a call that proves it knows the secret, 401 to others, 404 without a secret
// file, 413 above 1 MiB, 429 above 5 calls a second, and 503 if the secret cannot
// be had.
func New(o Options) http.Handler {
	if o.SecretFile == "" {
		return http.NotFoundHandler()
	}
	return &hook{Options: o, left: burst, at: time.Now()}
}

type hook struct {
	Options

	mu    sync.Mutex // guards all below
	left  float64    // calls that may come now
	at    time.Time  // when that was
	fault string     // of the secret file, as logged; "": it is fine
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if !h.admit(time.Now()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many calls", http.StatusTooManyRequests)
		return
	}
	secret, err := readSecret(h.SecretFile)
	h.note(r, err)
	if err != nil {
		http.Error(w, "webhooks are not set up", http.StatusServiceUnavailable)
		return
	}
	// A server in a test has no deadlines; without one the body is bounded still.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
	mac := hmac.New(sha256.New, secret)
	if _, err := io.Copy(mac, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		refuseBody(w, err)
		return
	}
	if !proves(r.Header, mac, secret) {
		http.Error(w, "the signature does not hold", http.StatusUnauthorized)
		return
	}
	h.Notify()
	w.WriteHeader(http.StatusAccepted)
}

func refuseBody(w http.ResponseWriter, err error) {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		http.Error(w, "larger than 1 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the body broke off", http.StatusBadRequest)
}

// admit reports whether another call may be looked at.
func (h *hook) admit(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = min(burst, h.left+now.Sub(h.at).Seconds()*perSecond)
	h.at = now
	if h.left < 1 {
		return false
	}
	h.left--
	return true
}

// note logs what is wrong with the secret file, once until it is something else.
func (h *hook) note(r *http.Request, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	switch {
	case fault == h.fault:
	case err != nil:
		h.Log.ErrorContext(r.Context(), "webhooks of the limits repository are refused: configurator.webhook_secret_file cannot be used", "err", err)
	default:
		h.Log.InfoContext(r.Context(), "webhooks of the limits repository are taken again")
	}
	h.fault = fault
}

// readSecret reads the secret. A pipe would have each call wait for a writer.
func readSecret(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecret {
		return nil, fmt.Errorf("%s: no regular file of at most %d bytes", name, maxSecret)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minSecret {
		return nil, fmt.Errorf("%s: the secret has %d bytes, and at least %d are needed", name, len(secret), minSecret)
	}
	return []byte(secret), nil
}

// proves reports whether a call was made by who knows the secret. mac has its body.
func proves(h http.Header, mac hash.Hash, secret []byte) bool {
	if signature, ok := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256="); ok {
		given, err := hex.DecodeString(signature)
		return err == nil && hmac.Equal(given, mac.Sum(nil))
	}
	// Of the hashes, which are of one length: the time tells nothing of the secret.
	given, want := sha256.Sum256([]byte(h.Get("X-Gitlab-Token"))), sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}
