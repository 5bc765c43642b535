package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"grl/roles/client/proxy"
)

// A connection to an upstream ends before an upstream would end it, which is
// after 2 s at the soonest of the usual servers: a request with a body that is
// on its way then is lost.
func TestConnectionEndsBeforeUpstreamEndsIt(t *testing.T) {
	idle, closed := make(chan time.Time, 10), make(chan time.Time, 10)
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	up.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateIdle:
			idle <- time.Now()
		case http.StateClosed:
			closed <- time.Now()
		}
	}
	up.Start()
	t.Cleanup(up.Close)
	sidecar := inbound(t, up.URL, proxy.Options{})
	res, err := client(t, false).Post("http://"+sidecar, "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "hello" {
		t.Fatalf("%q, %v", body, err)
	}
	_ = res.Body.Close()
	begin := <-idle
	if took := (<-closed).Sub(begin); took < 500*time.Millisecond || took >= 2*time.Second {
		t.Errorf("closed after %v, want that it is kept for a moment and gone before 2 s", took)
	}
}
