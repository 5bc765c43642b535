package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"grl/roles/client/proxy"
)

// recorder is a workload that notes each request it believes to have received,
// read by a parser of its own connection.
type recorder struct {
	mu   sync.Mutex
	seen []arrived // guarded by mu
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rec.mu.Lock()
	rec.seen = append(rec.seen, arrived{Method: r.Method, URI: r.RequestURI, Host: r.Host, Header: r.Header, Body: string(body)})
	rec.mu.Unlock()
	_, _ = io.WriteString(w, "ok")
}

// take returns what was seen.
func (rec *recorder) take() []arrived {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.seen
}

// smuggling are requests whose end, host or headers two readers might see
// differently. What is called
// /hidden must never arrive as a request of its own.
var smuggling = []struct {
	name, request string
	most          int    // requests that may arrive
	body          string // of the first that arrives, where it matters
}{
	{"CL and TE, CL longer", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1, ""},
	{"TE and CL, CL shorter", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 1, "hello"},
	{"two lengths that differ", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"two lengths in one line", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 35\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"negative length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"signed length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"hexadecimal length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0x0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"huge length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"two encodings", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"an unknown encoding", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"encodings in one line", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"encoding with a tab", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 1, ""},
	{"encoding with a vertical tab", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"space before the colon", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"encoding in HTTP/1.0", "POST /a HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 1, ""},
	{"folded header", "POST /a HTTP/1.1\r\nHost: x\r\nX: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", 1, "hello"},
	{"folded encoding", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 1, ""},
	{"bare line feeds in the head", "POST /a HTTP/1.1\nHost: x\nContent-Length: 5\n\nhello", 1, "hello"},
	{"bare line feed before a hidden header", "POST /a HTTP/1.1\r\nHost: x\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1, ""},
	{"bare carriage return in a value", "GET /a HTTP/1.1\r\nHost: x\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n", 0, ""},
	{"NUL in a value", "GET /a HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 0, ""},
	{"chunk extension", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0;c\r\n\r\n", 1, "hello"},
	{"line feed in a chunk extension", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;\nhello\r\n0\r\n\r\n", 1, ""},
	{"chunk with a bad size", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, ""},
	{"chunk with a signed size", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, ""},
	{"chunk longer than its size", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, ""},
	{"chunk size that overflows", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", 1, ""},
	{"trailer that sets a length", "POST /a HTTP/1.1\r\nHost: x\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 99\r\n\r\n", 1, ""},
	{"undeclared trailer", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHost: evil\r\n\r\n", 1, "hello"},
	{"GET with a body", "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 33\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"HEAD with a body", "HEAD /a HTTP/1.1\r\nHost: x\r\nContent-Length: 33\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"Connection names the length", "POST /a HTTP/1.1\r\nHost: x\r\nConnection: Content-Length\r\nContent-Length: 33\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"Connection names the encoding", "POST /a HTTP/1.1\r\nHost: x\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 1, "hello"},
	{"Connection names the host", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Host\r\n\r\n", 1, ""},
	{"Connection names X-Forwarded-For", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: X-Forwarded-For\r\n\r\n", 1, ""},
	{"two hosts", "GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 0, ""},
	{"no host", "GET /a HTTP/1.1\r\n\r\n", 0, ""},
	{"absolute target and another host", "GET http://x/a HTTP/1.1\r\nHost: y\r\n\r\n", 1, ""},
	{"target without a host", "GET http:a HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"user in the target", "GET http://u:p@x/a HTTP/1.1\r\nHost: x\r\n\r\n", 1, ""},
	{"space in the target", "GET /a HTTP/1.1 /b HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"tab in the request line", "GET\t/a\tHTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"space before the method", " GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"method with a bracket", "GET[] /a HTTP/1.1\r\nHost: x\r\n\r\n", 0, ""},
	{"HTTP/0.9", "GET /a\r\n\r\n", 0, ""},
	{"another version", "GET /a HTTP/1.2\r\nHost: x\r\n\r\n", 1, ""},
	{"space in a header's name", "GET /a HTTP/1.1\r\nHost: x\r\nX Y: z\r\n\r\n", 0, ""},
	{"empty header's name", "GET /a HTTP/1.1\r\nHost: x\r\n: z\r\n\r\n", 0, ""},
	{"upgrade to h2c", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n", 1, ""},
	{"upgrade that nobody takes", "POST /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: foo\r\nContent-Length: 33\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n", 1, "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"},
}

// lastRequest follows each case on its connection and ends it: all that comes
// before it must have arrived as one request or none.
const lastRequest = "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

func TestOneRequestInIsAtMostOneOut(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		for _, tt := range smuggling {
			t.Run(scheme+" "+tt.name, func(t *testing.T) {
				rec := new(recorder)
				up := origin(t, rec)
				conn := dial(t, inbound(t, strings.Replace(up.URL, "http", scheme, 1), proxy.Options{}))
				if _, err := io.WriteString(conn, tt.request+lastRequest); err != nil {
					t.Fatal(err)
				}
				// A reset is as good an end as any for a request that was refused.
				answer, _ := io.ReadAll(conn)
				up.Close() // waits for requests whose answer nobody read
				seen := slices.DeleteFunc(rec.take(), func(a arrived) bool { return a.URI == "/last" })
				if len(seen) > tt.most {
					t.Fatalf("%d requests arrived, at most %d may: %+v", len(seen), tt.most, seen)
				}
				for _, a := range seen {
					if a.URI != "/a" || a.Host != "x" {
						t.Errorf("%s for %q arrived", a.URI, a.Host)
					}
					if tt.body != "" && a.Body != tt.body {
						t.Errorf("body %q arrived, want %q", a.Body, tt.body)
					}
					if a.Header.Get("Authorization") != "" || a.Header.Get("X-Forwarded-For") == "" {
						t.Errorf("header %v arrived", a.Header)
					}
				}
				if tt.most == 0 && strings.HasPrefix(string(answer), "HTTP/1.1 2") {
					t.Errorf("answer %q, want a refusal", answer)
				}
			})
		}
	}
}

// TestH2CUpgradeIsNotPassedOn has a workload that would take the upgrade, and
// with it a tunnel around the limiter.
func TestH2CUpgradeIsNotPassedOn(t *testing.T) {
	for _, upgrade := range []string{"h2c", "H2C", "websocket, h2c"} {
		rec := new(recorder)
		up := origin(t, rec)
		for _, scheme := range []string{"http", "h2c"} {
			addr := inbound(t, strings.Replace(up.URL, "http", scheme, 1), proxy.Options{})
			status, _ := raw(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "+upgrade+"\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
			if status != 200 {
				t.Errorf("%s: status %d", upgrade, status)
			}
		}
		for _, a := range rec.take() {
			for _, name := range []string{"Upgrade", "Connection", "Http2-Settings"} {
				if v, ok := a.Header[name]; ok {
					t.Errorf("%s: %s: %q arrived", upgrade, name, v)
				}
			}
		}
	}
}

// TestPipelinedRequestsKeepTheirAnswers sends three requests at once.
func TestPipelinedRequestsKeepTheirAnswers(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	conn := dial(t, inbound(t, up.URL, proxy.Options{}))
	_, _ = io.WriteString(conn, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\nHost: x\r\n\r\n")
	reader := bufio.NewReader(conn)
	for _, want := range []string{"/1", "/2", "/3"} {
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("answer %q, %v, want %q", body, err, want)
		}
	}
}

// TestDowngradeFromHTTP2 sends over HTTP/2 what HTTP/1.1 would read as framing.
func TestDowngradeFromHTTP2(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fields [][2]string
		most   int
	}{
		{"plain", nil, 1},
		{"transfer-encoding", [][2]string{{"transfer-encoding", "chunked"}}, 0},
		{"connection", [][2]string{{"connection", "x-secret"}}, 0},
		{"upgrade", [][2]string{{"upgrade", "websocket"}}, 0},
		{"te other than trailers", [][2]string{{"te", "chunked"}}, 0},
		{"length shorter than the body", [][2]string{{"content-length", "1"}}, 1},
		{"length longer than the body", [][2]string{{"content-length", "99"}}, 1},
		{"two lengths", [][2]string{{"content-length", "5"}, {"content-length", "0"}}, 1},
		{"line break in a value", [][2]string{{"x", "a\r\ntransfer-encoding: chunked"}}, 0},
		{"line break in a name", [][2]string{{"x\r\ntransfer-encoding", "chunked"}}, 0},
		{"colon in a name", [][2]string{{"x: y", "z"}}, 0},
		{"upper case in a name", [][2]string{{"X", "y"}}, 0},
		{"line break in the path", [][2]string{{":path", "/a HTTP/1.1\r\nHost: evil\r\n\r\n"}}, 0},
		{"space in the path", [][2]string{{":path", "/a HTTP/1.1"}}, 1},
		{"line break in the method", [][2]string{{":method", "GET / HTTP/1.1\r\n\r\nPOST"}}, 0},
		{"space in the method", [][2]string{{":method", "GET /hidden HTTP/1.1"}}, 0},
		{"line break in the authority", [][2]string{{":authority", "x\r\nX: y"}}, 0},
		{"another pseudo-header", [][2]string{{":evil", "x"}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := new(recorder)
			up := origin(t, rec)
			if err := sendHTTP2(dial(t, inbound(t, up.URL, proxy.Options{})), tt.fields, "hello"); err != nil && !errors.Is(err, io.EOF) {
				t.Log(err) // a refused stream or connection
			}
			up.Close() // waits for requests whose answer nobody read
			seen := rec.take()
			if len(seen) > tt.most {
				t.Fatalf("%d requests arrived, at most %d may: %+v", len(seen), tt.most, seen)
			}
			if tt.name == "plain" && (len(seen) != 1 || seen[0].Body != "hello") {
				t.Errorf("arrived: %+v", seen)
			}
			for _, a := range seen {
				if a.Host != "x" || a.Method != "POST" || !strings.HasPrefix(a.URI, "/a") {
					t.Errorf("arrived: %+v", a)
				}
			}
		})
	}
}
