package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"grl/limiter"
	"grl/roles/client/proxy"
)

// webSocket accepts an upgrade and sends every byte back in upper case.
var webSocket = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-Websocket-Key") == "" {
		http.Error(w, "no upgrade", http.StatusBadRequest)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	_ = rw.Flush()
	for {
		b, err := rw.ReadByte()
		if err != nil {
			return
		}
		_, _ = rw.WriteString(strings.ToUpper(string(b)))
		_ = rw.Flush()
	}
})

func TestWebSocketPasses(t *testing.T) {
	up := origin(t, webSocket)
	secure := httptest.NewUnstartedServer(webSocket)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	o := proxy.Options{TLS: &tls.Config{RootCAs: roots}}

	for name, addr := range map[string]string{
		"http":     inbound(t, up.URL, o),
		"h2c":      inbound(t, strings.Replace(up.URL, "http", "h2c", 1), o),
		"https":    inbound(t, secure.URL, o),
		"outbound": outbound(t, limiter.New(limiter.Options{})),
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, addr)
			_, _ = fmt.Fprintf(conn, "GET /chat HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"+
				"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", strings.TrimPrefix(up.URL, "http://"))
			reader := bufio.NewReader(conn)
			res, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != 101 || res.Header.Get("Upgrade") != "websocket" || res.Header.Get("Sec-Websocket-Accept") == "" {
				t.Fatalf("status %d, header %v", res.StatusCode, res.Header)
			}
			for _, c := range "grl" {
				_, _ = fmt.Fprintf(conn, "%c", c)
				if b, err := reader.ReadByte(); err != nil || b != byte(c)-32 {
					t.Fatalf("sent %c, got %c, %v", c, b, err)
				}
			}
		})
	}
}

func TestWebSocketIsDropped(t *testing.T) {
	up := origin(t, webSocket)
	addr := inbound(t, up.URL, proxy.Options{Limiter: limited(t, limiter.Inbound, limiter.Bucket{})})
	status, _ := raw(t, addr, "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n")
	if status != 429 {
		t.Errorf("status %d, want 429", status)
	}
}

func TestExpectContinue(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	addr := inbound(t, up.URL, proxy.Options{})
	head := "Host: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"

	conn := dial(t, addr)
	_, _ = io.WriteString(conn, "POST /take HTTP/1.1\r\n"+head)
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v, want 100 Continue before the body", line, err)
	}
	_, _ = io.WriteString(conn, "hello")
	all, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(all), "HTTP/1.1 200 OK") || !strings.HasSuffix(string(all), "hello") {
		t.Errorf("%q, %v", all, err)
	}

	// A refusal arrives without the body having been asked for.
	if status, _ := raw(t, addr, "POST /refuse HTTP/1.1\r\n"+head); status != http.StatusExpectationFailed {
		t.Errorf("status %d, want 417", status)
	}
	dropping := inbound(t, up.URL, proxy.Options{Limiter: limited(t, limiter.Inbound, limiter.Bucket{})})
	if status, _ := raw(t, dropping, "POST /take HTTP/1.1\r\n"+head); status != 429 {
		t.Errorf("dropped: status %d, want 429", status)
	}
}

func TestInformationalAnswersPass(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "done")
	}))
	for _, h2 := range []bool{false, true} {
		hints := 0
		r := request(t, "GET", "http://"+inbound(t, up.URL, proxy.Options{}), "")
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
				if code == http.StatusEarlyHints && header.Get("Link") != "" {
					hints++
				}
				return nil
			},
		}))
		if res, body := get(t, client(t, h2), r); res.StatusCode != 200 || body != "done" || hints != 1 {
			t.Errorf("h2 %v: status %d, body %q, %d early hints", h2, res.StatusCode, body, hints)
		}
	}
}

func TestHEADKeepsTheLength(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1234")
	}))
	for _, h2 := range []bool{false, true} {
		res, body := get(t, client(t, h2), request(t, "HEAD", "http://"+inbound(t, up.URL, proxy.Options{}), ""))
		if res.StatusCode != 200 || res.ContentLength != 1234 || body != "" {
			t.Errorf("h2 %v: status %d, length %d, body %q", h2, res.StatusCode, res.ContentLength, body)
		}
	}
}

func TestEachEventOfAStreamPassesAtOnce(t *testing.T) {
	for _, contentType := range []string{"text/event-stream", "text/plain"} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, h2 %v", contentType, h2), func(t *testing.T) {
				next := make(chan struct{}, 1) // asks for the next event
				up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", contentType)
					_ = http.NewResponseController(w).Flush()
					for i := range 5 {
						<-next
						_, _ = fmt.Fprintf(w, "event %d\n", i)
						_ = http.NewResponseController(w).Flush()
					}
				}))
				defer close(next)
				res, err := client(t, h2).Do(request(t, "GET", "http://"+inbound(t, up.URL, proxy.Options{}), ""))
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				reader := bufio.NewReader(res.Body)
				for i := range 5 {
					next <- struct{}{}
					if line, err := reader.ReadString('\n'); err != nil || line != fmt.Sprintf("event %d\n", i) {
						t.Fatalf("%q, %v", line, err)
					}
				}
			})
		}
	}
}

func TestOptionsOfTheWholeServerReachesIt(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Seen", r.RequestURI) }))
	up.Config.DisableGeneralOptionsHandler = true
	conn := dial(t, inbound(t, up.URL, proxy.Options{}))
	_, _ = io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("X-Seen") != "*" {
		t.Errorf("status %d, target %q", res.StatusCode, res.Header.Get("X-Seen"))
	}
}

// TestAnswerBeforeTheBodyEnds has upstream refuse an upload that it does not
// read, while the client goes on sending.
func TestAnswerBeforeTheBodyEnds(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}))
	conn := dial(t, inbound(t, up.URL, proxy.Options{}))
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for block := make([]byte, 64<<10); ; {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	// Either the refusal or, if upstream had hung up before it was read, 502.
	if res.StatusCode != http.StatusRequestEntityTooLarge && res.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d, want 413 or 502", res.StatusCode)
	}
	_ = conn.Close()
	<-stopped
}

func TestHeadersAreBounded(t *testing.T) {
	up := origin(t, echo)
	addr := inbound(t, up.URL, proxy.Options{})
	for _, tt := range []struct{ bytes, want int }{{20 << 10, 200}, {64 << 10, 431}} {
		status, _ := raw(t, addr, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Big: "+strings.Repeat("a", tt.bytes)+"\r\n\r\n")
		if status != tt.want {
			t.Errorf("header of %d bytes: status %d, want %d", tt.bytes, status, tt.want)
		}
	}
}
