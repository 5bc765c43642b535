package page_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a-h/templ"

	"grl/proto/access"
	"grl/web/page"
	"grl/web/pagetest"
)

// A reader that does not read, and a form that does not come, hold nothing for
// long.
func TestIdlePeers(t *testing.T) {
	s := pagetest.Site(pagetest.Memory{})
	var text atomic.Value
	text.Store("<p>one</p>")
	whole := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("<p>row</p>", 30_000))
		return err
	})
	const (
		get  = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
		post = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 20\r\n\r\na=b"
	)
	for _, tt := range []struct {
		name    string
		request string
		serve   http.HandlerFunc
		within  time.Duration
	}{
		{"a page", get, func(w http.ResponseWriter, r *http.Request) { s.Render(w, r, http.StatusOK, whole) }, 30 * time.Second},
		{"a stream", get, func(w http.ResponseWriter, r *http.Request) { s.Stream(w, r, time.Second, told(&text)) }, 10 * time.Second},
		{"a form", post, func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(access.With(r.Context(), access.Identity{Person: &access.Person{Name: "ana"}}))
			if page.ReadForm(w, r) {
				t.Error("half a form was read")
			}
		}, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := make(chan time.Duration, 1)
				conn := pagetest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					began := time.Now()
					tt.serve(w, r)
					held <- time.Since(began)
				}))
				if _, err := io.WriteString(conn, tt.request); err != nil {
					t.Fatal(err)
				}
				if got := <-held; got != tt.within {
					t.Errorf("held for %v, want %v", got, tt.within)
				}
			})
		})
	}
}

// A stream that has nothing to say for longer than a reader may take goes on.
func TestQuietStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pagetest.Site(pagetest.Memory{})
		var text atomic.Value
		text.Store("<p>one</p>")
		conn := pagetest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Stream(w, r, 12*time.Second, told(&text)) }))
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
		defer transport.CloseIdleConnections()
		began := time.Now()
		res, err := (&http.Client{Transport: transport}).Get("http://localhost/caps/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if want := "data: <p>one</p>\n\nevent: alive\n\nevent: alive\n\n"; err != nil || string(body) != want {
			t.Errorf("after %v: %q, %v", time.Since(began), body, err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the stream lived for %v", took)
		}
	})
}
