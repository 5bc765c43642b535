// Package webhook hears from the host of the limits repository that something
// was pushed. What it says is not trusted: it only makes the configurator look.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
)

// Path is where calls go.
const Path = "/hooks/repository"

const (
	maxBody   = 1 << 20 // bytes of a call
	minSecret = 16      // bytes
)

// Options says what a webhook proves calls by, and whom it tells.
type Options struct {
	// SecretFile holds the secret, at least 16 bytes, read anew for each call;
	// empty: there is no webhook.
	SecretFile string
	Log        *slog.Logger
	Notify     func() // from the goroutine of a call
}

// New returns the handler of POST Path: as GitHub and Gitea sign, with
// X-Hub-Signature-256, or as GitLab does, with X-Gitlab-Token.
func New(o Options) http.Handler {
	if o.SecretFile == "" {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST only", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "too large, or broken off", http.StatusRequestEntityTooLarge)
			return
		}
		secret, err := os.ReadFile(o.SecretFile)
		secret = []byte(strings.TrimSpace(string(secret)))
		if err != nil || len(secret) < minSecret {
			o.Log.ErrorContext(r.Context(), "configurator.webhook_secret_file cannot be read, or has less than 16 bytes: webhooks are refused", "err", err)
			http.Error(w, "webhooks are not set up", http.StatusServiceUnavailable)
			return
		}
		if !proves(r.Header, body, secret) {
			http.Error(w, "the signature does not hold", http.StatusUnauthorized)
			return
		}
		o.Notify()
		w.WriteHeader(http.StatusAccepted)
	})
}

// proves reports whether a call was made by who knows the secret.
func proves(h http.Header, body, secret []byte) bool {
	if signature, ok := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256="); ok {
		given, err := hex.DecodeString(signature)
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		return err == nil && hmac.Equal(given, mac.Sum(nil))
	}
	return subtle.ConstantTimeCompare([]byte(h.Get("X-Gitlab-Token")), secret) == 1
}
