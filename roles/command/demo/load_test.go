package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"grl/limiter/httplimit"
)

func TestSplitKeepsTheSharesOfEveryStretch(t *testing.T) {
	s := newSplit()
	const n = 10_000
	var dealt [len(shares)]int
	for i := range n {
		dealt[s.next()]++
		for lane, share := range shares {
			if want := float64(i+1) * float64(share) / float64(s.total); dealt[lane] > int(want)+2 || dealt[lane] < int(want)-2 {
				t.Fatalf("lane %d had %d of the first %d, want %.1f", lane, dealt[lane], i+1, want)
			}
		}
	}
}

// A sidecar names caller and procedure of what the generator writes.
func TestRequestIsAnRPC(t *testing.T) {
	identity, err := httplimit.NewIdentity(httplimit.IdentityConfig{Headers: []string{"rpc-caller"}})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct{ caller, procedure, body string }
	got := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		caller, _ := identity.Caller(r)
		body, _ := io.ReadAll(r.Body) // what is missing shows
		got <- seen{caller, httplimit.Procedure(r, nil), string(body)}
	}))
	defer server.Close()
	c := connection{address: server.Listener.Addr().String()}
	defer c.close()
	if o := c.exchange(kind{"frontend", "cartservice.CartService/GetCart"}.request()); o != admitted {
		t.Errorf("outcome %v, want admitted", o)
	}
	if got, want := <-got, (seen{"frontend", "cartservice.CartService/GetCart", "{}"}); got != want {
		t.Errorf("server saw %+v, want %+v", got, want)
	}
}

func TestConnectionTellsOutcomes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch procedure := strings.TrimPrefix(r.URL.Path, "/"); procedure {
		case "drop":
			w.WriteHeader(http.StatusTooManyRequests)
		case "break":
			w.WriteHeader(http.StatusBadGateway)
		case "close":
			w.Header().Set("Connection", "close")
		case "cut":
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 5000)) // longer than a buffer
	}))
	defer server.Close()
	c := connection{address: server.Listener.Addr().String()}
	defer c.close()
	// One after the other on one connection, which is opened again when it has
	// to be.
	for _, tt := range []struct {
		procedure string
		want      outcome
	}{
		{"", admitted},
		{"drop", dropped},
		{"break", failed},
		{"close", admitted},
		{"cut", failed},
		{"", admitted},
	} {
		if got := c.exchange(kind{"frontend", tt.procedure}.request()); got != tt.want {
			t.Errorf("%q: outcome %v, want %v", tt.procedure, got, tt.want)
		}
	}
	server.Close()
	if got := c.exchange(kind{"frontend", ""}.request()); got != failed {
		t.Errorf("without a server: outcome %v, want failed", got)
	}
}
