package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"grl/roles/configurator/webhook"
)

const secret = "0123456789abcdef"

// A hook is a webhook with a secret file.
type hook struct {
	http.Handler
	file   string
	log    bytes.Buffer
	pushed int // how often it was told
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{file: filepath.Join(t.TempDir(), "secret")}
	h.keep(t, secret+"\n")
	h.Handler = webhook.New(webhook.Options{SecretFile: h.file, Log: slog.New(slog.NewTextHandler(&h.log, nil)), Notify: func() { h.pushed++ }})
	return h
}

func (h *hook) keep(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// call makes a call with headers in turn: name, value.
func (h *hook) call(method string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, webhook.Path, body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func sign(key, body string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func TestCalls(t *testing.T) {
	const hub, lab, body = "X-Hub-Signature-256", "X-Gitlab-Token", `{"ref":"refs/heads/main"}`
	large := strings.Repeat("x", 1<<20)
	tests := []struct {
		name    string
		method  string
		body    io.Reader
		headers []string
		want    int
	}{
		{"signed", "POST", strings.NewReader(body), []string{hub, sign(secret, body)}, http.StatusAccepted},
		{"signed, in capitals", "POST", strings.NewReader(body), []string{hub, "sha256=" + strings.ToUpper(sign(secret, body)[7:])}, http.StatusAccepted},
		{"signed, and empty", "POST", http.NoBody, []string{hub, sign(secret, "")}, http.StatusAccepted},
		{"signed, and no JSON", "POST", strings.NewReader("\x00{"), []string{hub, sign(secret, "\x00{")}, http.StatusAccepted},
		{"signed, as large as may be", "POST", strings.NewReader(large), []string{hub, sign(secret, large)}, http.StatusAccepted},
		{"with a token", "POST", strings.NewReader(body), []string{lab, secret}, http.StatusAccepted},

		{"nothing", "POST", strings.NewReader(body), nil, http.StatusUnauthorized},
		{"signed with another secret", "POST", strings.NewReader(body), []string{hub, sign("fedcba9876543210", body)}, http.StatusUnauthorized},
		{"signature of another body", "POST", strings.NewReader(body), []string{hub, sign(secret, body+" ")}, http.StatusUnauthorized},
		{"part of the signature", "POST", strings.NewReader(body), []string{hub, sign(secret, body)[:len("sha256=")+32]}, http.StatusUnauthorized},
		{"empty signature", "POST", strings.NewReader(body), []string{hub, "sha256="}, http.StatusUnauthorized},
		{"no hexadecimal digits", "POST", strings.NewReader(body), []string{hub, "sha256=" + strings.Repeat("g", 64)}, http.StatusUnauthorized},
		{"another hash", "POST", strings.NewReader(body), []string{hub, strings.Replace(sign(secret, body), "sha256", "sha1", 1)}, http.StatusUnauthorized},
		{"the secret as a signature", "POST", strings.NewReader(body), []string{hub, secret}, http.StatusUnauthorized},
		{"the signature as a token", "POST", strings.NewReader(body), []string{lab, sign(secret, body)}, http.StatusUnauthorized},
		{"a wrong signature and the token", "POST", strings.NewReader(body), []string{hub, sign("x", body), lab, secret}, http.StatusUnauthorized},
		{"a wrong signature before a good one", "POST", strings.NewReader(body), []string{hub, sign("x", body), hub, sign(secret, body)}, http.StatusUnauthorized},
		{"empty token", "POST", strings.NewReader(body), []string{lab, ""}, http.StatusUnauthorized},
		{"part of the token", "POST", strings.NewReader(body), []string{lab, secret[:15]}, http.StatusUnauthorized},
		{"more than the token", "POST", strings.NewReader(body), []string{lab, secret + "0"}, http.StatusUnauthorized},

		{"too large", "POST", strings.NewReader(large + "x"), []string{hub, sign(secret, large+"x")}, http.StatusRequestEntityTooLarge},
		{"broken off", "POST", io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)), []string{lab, secret}, http.StatusBadRequest},
		{"another method", "GET", http.NoBody, []string{lab, secret}, http.StatusMethodNotAllowed},
		{"and another", "PUT", strings.NewReader(body), []string{hub, sign(secret, body)}, http.StatusMethodNotAllowed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHook(t)
			if got := h.call(tt.method, tt.body, tt.headers...); got.Code != tt.want {
				t.Errorf("status %d %q, want %d", got.Code, got.Body, tt.want)
			} else if strings.Contains(got.Body.String(), secret) {
				t.Errorf("the answer tells the secret: %q", got.Body)
			}
			if told := h.pushed == 1; told != (tt.want == http.StatusAccepted) || h.pushed > 1 {
				t.Errorf("told %d times with status %d", h.pushed, tt.want)
			}
		})
	}
}

func TestNoSecretFile(t *testing.T) {
	h := &hook{Handler: webhook.New(webhook.Options{Log: slog.New(slog.DiscardHandler), Notify: func() { t.Error("told") }})}
	for _, token := range []string{"", secret} {
		if got := h.call("POST", http.NoBody, "X-Gitlab-Token", token); got.Code != http.StatusNotFound {
			t.Errorf("status %d without a secret file, want 404", got.Code)
		}
	}
}

// TestSecretFile: the file is read anew, and nothing is taken while it does not
// hold; that is logged once.
func TestSecretFile(t *testing.T) {
	h := newHook(t)
	try := func(token string, want int) {
		t.Helper()
		if got := h.call("POST", http.NoBody, "X-Gitlab-Token", token); got.Code != want {
			t.Errorf("status %d with the token %q, want %d", got.Code, token, want)
		}
	}
	try(secret, http.StatusAccepted)
	const next = "another secret of some length"
	h.keep(t, "  "+next+"\r\n\n")
	try(secret, http.StatusUnauthorized)
	try(next, http.StatusAccepted)
	for _, bad := range []string{"", "\n", secret[:15] + "\n", strings.Repeat("x", 5000)} {
		h.keep(t, bad)
		try(strings.TrimSpace(bad), http.StatusServiceUnavailable)
		try(secret, http.StatusServiceUnavailable)
	}
	if err := os.Remove(h.file); err != nil {
		t.Fatal(err)
	}
	try("", http.StatusServiceUnavailable)
	if err := syscall.Mkfifo(h.file, 0o600); err != nil {
		t.Fatal(err)
	}
	try("", http.StatusServiceUnavailable)
	if err := os.Remove(h.file); err != nil {
		t.Fatal(err)
	}
	h.keep(t, secret)
	try(secret, http.StatusAccepted)
	// Empty and "\n" are one fault: 0 bytes.
	if refused, taken := strings.Count(h.log.String(), "level=ERROR"), strings.Count(h.log.String(), "taken again"); refused != 5 || taken != 1 {
		t.Errorf("%d errors and %d ends of them in the log, want 5 and 1:\n%s", refused, taken, h.log.String())
	}
	if strings.Contains(h.log.String(), secret[:15]) {
		t.Errorf("the log tells a secret:\n%s", h.log.String())
	}
}

// TestRate: more calls than it may take are refused, good ones too, and it takes
// them again after a while.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHook(t)
		count := func(calls int, token string) (codes map[int]int) {
			codes = make(map[int]int)
			for range calls {
				codes[h.call("POST", http.NoBody, "X-Gitlab-Token", token).Code]++
			}
			return codes
		}
		if got := count(30, "wrong"); got[http.StatusUnauthorized] != 20 || got[http.StatusTooManyRequests] != 10 {
			t.Errorf("30 calls at once: %v", got)
		}
		time.Sleep(time.Second)
		if got := count(10, secret); got[http.StatusAccepted] != 5 || got[http.StatusTooManyRequests] != 5 {
			t.Errorf("10 calls a second later: %v", got)
		}
		time.Sleep(time.Hour)
		if got := count(30, secret); got[http.StatusAccepted] != 20 {
			t.Errorf("30 calls after an hour: %v", got)
		}
		if h.pushed != 25 {
			t.Errorf("told %d times, want 25", h.pushed)
		}
	})
}

// TestSlowBody: a body that does not come holds a call for no longer than 10 s.
func TestSlowBody(t *testing.T) {
	h := newHook(t)
	r := httptest.NewRequest("POST", webhook.Path, http.NoBody)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	before := time.Now()
	h.ServeHTTP(w, r)
	if within := w.read.Sub(before); within <= 0 || within > 11*time.Second {
		t.Errorf("the body has %v, want 10s", within)
	}
}

// deadlines takes down what a server would be told.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = at
	return nil
}
