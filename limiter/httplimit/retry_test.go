package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"grl/limiter/httplimit"
)

// retrying is what a gRPC client with little patience has in its service
// config.
const retrying = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`

// TestGRPCClientDoesNotRetryDrop has a real client with a retry policy, which
// would retry the same refusal without its pushback.
func TestGRPCClientDoesNotRetryDrop(t *testing.T) {
	for _, tt := range []struct {
		name     string
		pushback bool
		want     int32 // attempts
	}{
		{"a drop", true, 1},
		{"a drop without pushback", false, 4},
	} {
		srv := dropping(t, aDrop())
		var attempts atomic.Int32
		drop := srv.Config.Handler
		srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			attempts.Add(1)
			if !tt.pushback {
				w = patient{w}
			}
			drop.ServeHTTP(w, r)
		})
		conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(srv.URL, "http://"),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(retrying))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		err = conn.Invoke(t.Context(), createCharge, &emptypb.Empty{}, &emptypb.Empty{})
		// A client that gives up after its last retry may say so in other words.
		if err == nil || tt.pushback && status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: %v, want ResourceExhausted", tt.name, err)
		}
		if n := attempts.Load(); n != tt.want {
			t.Errorf("%s: %d attempts, want %d", tt.name, n, tt.want)
		}
	}
}

// patient writes no pushback.
type patient struct{ http.ResponseWriter }

func (w patient) WriteHeader(status int) {
	w.Header().Del("Grpc-Retry-Pushback-Ms")
	w.ResponseWriter.WriteHeader(status)
}

// TestDropSaysNotToRetry in each protocol: a header for Envoy, which stands
// between, and for gRPC's clients their own.
func TestDropSaysNotToRetry(t *testing.T) {
	for contentType, pushback := range map[string]bool{
		"":                                false,
		"application/json":                false,
		"application/grpc+proto":          true,
		"application/grpc-web+proto":      false, // in the body
		"application/grpc-web-text+proto": false,
		"application/connect+proto":       false,
	} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("POST", createCharge, nil)
		r.Header.Set("Content-Type", contentType)
		httplimit.WriteDrop(rec, r, aDrop())
		if got := rec.Header().Get("X-Envoy-Ratelimited"); got != "true" {
			t.Errorf("%q: x-envoy-ratelimited is %q, want true", contentType, got)
		}
		if got := rec.Header().Get("Grpc-Retry-Pushback-Ms") == "-1"; got != pushback {
			t.Errorf("%q: a pushback of -1 is there: %v, want %v", contentType, got, pushback)
		}
		if contentType == "application/grpc-web+proto" && !strings.Contains(rec.Body.String(), "\r\ngrpc-retry-pushback-ms: -1\r\n") {
			t.Errorf("%q: trailers %q have no pushback", contentType, rec.Body)
		}
	}
}
