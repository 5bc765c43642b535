package httplimit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"grl/limiter"
	"grl/limiter/httplimit"
)

const createCharge = "/payments.v1.Charges/Create"

// aDrop is what a gate returns for a dropped request.
func aDrop() httplimit.Drop {
	bucket := &limiter.Bucket{Service: "payments", Name: "writes", LimitRPS: 10, Behavior: limiter.Deny}
	return httplimit.Drop{
		Decision: limiter.Decision{
			Dropped: true,
			Bucket:  bucket,
			Service: &limiter.Service{Name: "payments", Owner: "Zahlungen für 100 %"},
		},
		Caller:    "a/b",
		Procedure: "GET /v1/charges/{id}",
	}
}

const wantDetail = "bucket payments/writes of Zahlungen für 100 % is over its limit"

// dropping serves nothing but d, over HTTP/1.1 and unencrypted HTTP/2.
func dropping(t testing.TB, d httplimit.Drop) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httplimit.WriteDrop(w, r, d)
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// h2cClient returns a client of unencrypted HTTP/2.
func h2cClient(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestDropOverHTTP(t *testing.T) {
	d := aDrop()
	d.PublicURL = "https://grl.example/"
	srv := dropping(t, d)
	seen := map[string]bool{}
	for range 200 { // each wait is missing with probability (2/3)^200
		res, err := http.Get(srv.URL + "/v1/charges/7")
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		err = json.NewDecoder(res.Body).Decode(&body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"type": "about:blank", "title": "Too Many Requests", "status": 429.0, "detail": wantDetail,
			"bucket": "payments/writes", "owner": "Zahlungen für 100 %",
			"explain": "https://grl.example/explain?service=payments&caller=a%2Fb&procedure=GET+%2Fv1%2Fcharges%2F%7Bid%7D",
		}
		for k, v := range want {
			if body[k] != v {
				t.Errorf("%s = %v, want %v", k, body[k], v)
			}
		}
		if res.StatusCode != 429 || res.Header.Get("Content-Type") != "application/problem+json" || len(body) != len(want) {
			t.Errorf("status %d, content type %q, body %v", res.StatusCode, res.Header.Get("Content-Type"), body)
		}
		seen[res.Header.Get("Retry-After")] = true
	}
	if len(seen) != 3 || !seen["1"] || !seen["2"] || !seen["3"] {
		t.Errorf("Retry-After was %v, want 1, 2 and 3", seen)
	}
}

func TestDropWithoutPublicURLHasNoLink(t *testing.T) {
	rec := httptest.NewRecorder()
	httplimit.WriteDrop(rec, httptest.NewRequest("GET", "/", nil), aDrop())
	if strings.Contains(rec.Body.String(), "explain") {
		t.Errorf("body %s has a link", rec.Body)
	}
}

func TestDropOfHEADHasNoBody(t *testing.T) {
	srv := dropping(t, aDrop())
	res, err := http.Head(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || len(body) != 0 || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || res.ContentLength <= 0 {
		t.Errorf("status %d, body %q, %v, content length %d, Retry-After %q", res.StatusCode, body, err, res.ContentLength, res.Header.Get("Retry-After"))
	}
}

func TestDropKeepsTheConnection(t *testing.T) {
	srv := dropping(t, aDrop())
	var peers []string
	srv.Config.Handler = peerRecorder(&peers, srv.Config.Handler)
	for range 3 {
		res, err := http.Post(srv.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1000)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if len(peers) != 3 || peers[0] != peers[1] || peers[1] != peers[2] {
		t.Errorf("requests came from %v, want one connection", peers)
	}
}

func peerRecorder(peers *[]string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*peers = append(*peers, r.RemoteAddr)
		next.ServeHTTP(w, r)
	})
}

// checkDetails checks the details of an RPC error.
func checkDetails(t *testing.T, details []proto.Message) {
	t.Helper()
	var retry *errdetails.RetryInfo
	var info *errdetails.ErrorInfo
	for _, d := range details {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.ErrorInfo:
			info = d
		default:
			t.Errorf("detail %T", d)
		}
	}
	if delay := retry.GetRetryDelay().AsDuration(); delay < time.Second || delay > 3*time.Second || delay%time.Second != 0 {
		t.Errorf("retry after %v, want 1, 2 or 3 seconds", delay)
	}
	want := &errdetails.ErrorInfo{Reason: "GRL_DROP", Domain: "grl", Metadata: map[string]string{
		"bucket": "payments/writes", "owner": "Zahlungen für 100 %",
	}}
	if !proto.Equal(info, want) {
		t.Errorf("error info %v, want %v", info, want)
	}
}

func checkGRPC(t *testing.T, err error) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || s.Message() != wantDetail {
		t.Fatalf("error %v, want ResourceExhausted %q", err, wantDetail)
	}
	var details []proto.Message
	for _, d := range s.Details() {
		m, ok := d.(proto.Message)
		if !ok {
			t.Fatalf("detail %v", d)
		}
		details = append(details, m)
	}
	checkDetails(t, details)
}

func grpcClient(t testing.TB, srv *httptest.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(srv.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestDropOverGRPC(t *testing.T) {
	conn := grpcClient(t, dropping(t, aDrop()))
	for range 3 { // the connection stays usable
		checkGRPC(t, conn.Invoke(t.Context(), createCharge, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, createCharge)
	if err != nil {
		t.Fatal(err)
	}
	checkGRPC(t, stream.RecvMsg(&emptypb.Empty{}))
}

func checkConnect(t *testing.T, err error) {
	t.Helper()
	var ce *connect.Error
	if !errors.As(err, &ce) || ce.Code() != connect.CodeResourceExhausted || ce.Message() != wantDetail {
		t.Fatalf("error %v, want resource_exhausted %q", err, wantDetail)
	}
	var details []proto.Message
	for _, d := range ce.Details() {
		m, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		details = append(details, m)
	}
	checkDetails(t, details)
}

func TestDropOverConnect(t *testing.T) {
	srv := dropping(t, aDrop())
	for name, opts := range map[string][]connect.ClientOption{
		"Connect":      nil,
		"Connect JSON": {connect.WithProtoJSON()},
		"Connect GET":  {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"gRPC":         {connect.WithGRPC()},
		"gRPC-Web":     {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			client := connect.NewClient[emptypb.Empty, emptypb.Empty](h2cClient(t), srv.URL+createCharge, opts...)
			_, err := client.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{}))
			checkConnect(t, err)

			down, err := client.CallServerStream(t.Context(), connect.NewRequest(&emptypb.Empty{}))
			if err != nil {
				t.Fatal(err)
			}
			if down.Receive() {
				t.Error("received a message")
			}
			checkConnect(t, down.Err())
			_ = down.Close()

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			both := client.CallBidiStream(ctx)
			_ = both.Send(&emptypb.Empty{}) // io.EOF once the drop is there
			_, err = both.Receive()
			checkConnect(t, err)
			_ = both.CloseRequest()
			_ = both.CloseResponse()
		})
	}
}

func TestDropOverConnectSaysWhenToComeBack(t *testing.T) {
	rec := httptest.NewRecorder()
	r := httptest.NewRequest("POST", createCharge, nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Connect-Protocol-Version", "1")
	httplimit.WriteDrop(rec, r, aDrop())
	if n, err := strconv.Atoi(rec.Header().Get("Retry-After")); err != nil || n < 1 || n > 3 || rec.Code != 429 {
		t.Errorf("status %d, Retry-After %q", rec.Code, rec.Header().Get("Retry-After"))
	}
}

func TestDropOverGRPCWebText(t *testing.T) {
	rec := httptest.NewRecorder()
	r := httptest.NewRequest("POST", createCharge, nil)
	r.Header.Set("Content-Type", "application/grpc-web-text+proto; charset=utf-8")
	httplimit.WriteDrop(rec, r, aDrop())
	if got := rec.Header().Get("Content-Type"); got != "application/grpc-web-text+proto" || rec.Code != 200 {
		t.Errorf("status %d, content type %q", rec.Code, got)
	}
	body, err := base64.StdEncoding.DecodeString(rec.Body.String())
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 5 || body[0] != 0x80 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-5 {
		t.Fatalf("body %q is no trailer frame", body)
	}
	trailers := map[string]string{}
	for line := range bytes.Lines(body[5:]) {
		k, v, _ := strings.Cut(strings.TrimSuffix(string(line), "\r\n"), ": ")
		trailers[k] = v
	}
	message, err := url.PathUnescape(trailers["grpc-message"])
	if err != nil || message != wantDetail || trailers["grpc-status"] != "8" || trailers["grpc-status-details-bin"] == "" {
		t.Errorf("trailers %v, message %q, %v", trailers, message, err)
	}
}

func BenchmarkWriteDrop(b *testing.B) {
	d := aDrop()
	d.PublicURL = "https://grl.example"
	for name, contentType := range map[string]string{"http": "", "grpc": "application/grpc", "connect": "application/connect+proto"} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("POST", createCharge, nil)
			r.Header.Set("Content-Type", contentType)
			b.ReportAllocs()
			for b.Loop() {
				httplimit.WriteDrop(nowhere{}, r, d)
			}
		})
	}
}

// nowhere is a ResponseWriter that costs next to nothing.
type nowhere struct{}

func (nowhere) Header() http.Header         { return make(http.Header, 4) }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
