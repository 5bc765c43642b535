package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

var (
	// errTooLarge is an answer beyond maxAnswer.
	errTooLarge = errors.New("the answer has more than 32 MiB")
	// errRefused is an answer that no other query will change.
	errRefused = errors.New("refused")
)

// maxRedirects is how often a server may say that it is elsewhere.
const maxRedirects = 3

// checkRedirect lets a server send on to other paths of its own alone: a token
// would go along, and an answer could come from anywhere.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("%w: redirect from %s to %s", errRefused, first.Host, next.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d redirects", errRefused, maxRedirects)
	}
	return nil
}

// transport proves who asks, bounds answers, and looks whether they are partial.
type transport struct {
	next              http.RoundTripper
	tokenFile, tenant string
}

// partialKey is the context's key of a *bool: the answer is partial.
type partialKey struct{}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if t.tokenFile != "" {
		token, err := os.ReadFile(t.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("%w: token: %w", errRefused, err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	if t.tenant != "" {
		r.Header.Set("X-Scope-OrgID", t.tenant)
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.ContentLength > maxAnswer {
		response.Body.Close()
		return nil, errTooLarge
	}
	body := bufio.NewReader(response.Body)
	if partial, ok := r.Context().Value(partialKey{}).(*bool); ok && response.StatusCode == http.StatusOK {
		*partial = isPartial(body)
	}
	response.Body = &bounded{body, response.Body, maxAnswer}
	return response, nil
}

// isPartial reports whether VictoriaMetrics says that some of its nodes did not
// answer. It says so before the data, in a field of its own.
func isPartial(body *bufio.Reader) bool {
	begin, _ := body.Peek(256) // a shorter answer is what there is
	head, _, _ := bytes.Cut(begin, []byte(`"data"`))
	return bytes.Contains(bytes.ReplaceAll(head, []byte(" "), nil), []byte(`"isPartial":true`))
}

// bounded is a body that ends with errTooLarge.
type bounded struct {
	io.Reader
	io.Closer
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// withPartial returns a context in which transport says whether an answer is
// partial.
func withPartial(ctx context.Context) (context.Context, *bool) {
	partial := new(bool)
	return context.WithValue(ctx, partialKey{}, partial), partial
}
