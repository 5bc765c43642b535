package httplimit

import (
	"net/http"
	"testing"
)

func TestAttempt(t *testing.T) {
	byDefault := attemptHeaders(nil)
	own := attemptHeaders([]string{"x-try", "x-attempt"})
	tests := []struct {
		name    string
		headers []string
		header  http.Header
		want    uint32 // attempts before this one
	}{
		{"none", byDefault, http.Header{}, 0},
		{"Envoy's first", byDefault, http.Header{"X-Envoy-Attempt-Count": {"1"}}, 0},
		{"Envoy's third", byDefault, http.Header{"X-Envoy-Attempt-Count": {"3"}}, 2},
		{"Envoy's zeroth", byDefault, http.Header{"X-Envoy-Attempt-Count": {"0"}}, 0},
		{"gRPC's first", byDefault, http.Header{"Grpc-Previous-Rpc-Attempts": {"0"}}, 0},
		{"gRPC's second", byDefault, http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}}, 1},
		{"both", byDefault, http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}, "X-Envoy-Attempt-Count": {"4"}}, 3},
		{"one of each kind", byDefault, http.Header{"Grpc-Previous-Rpc-Attempts": {"2"}, "X-Envoy-Attempt-Count": {"1"}}, 2},
		{"no number", byDefault, http.Header{"Grpc-Previous-Rpc-Attempts": {"x"}, "X-Envoy-Attempt-Count": {"-3"}}, 0},
		{"too large", byDefault, http.Header{"X-Envoy-Attempt-Count": {"1000001"}}, 0},
		{"twice", byDefault, http.Header{"X-Envoy-Attempt-Count": {"2", "3"}}, 0},
		{"another header", byDefault, http.Header{"X-Try": {"3"}}, 0},
		{"configured", own, http.Header{"X-Try": {"3"}}, 2},
		{"configured second", own, http.Header{"X-Attempt": {"2"}}, 1},
		{"not configured", own, http.Header{"X-Envoy-Attempt-Count": {"3"}}, 0},
		{"gRPC's beside configured ones", own, http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}}, 1},
		{"gRPC's alone", attemptHeaders([]string{}), http.Header{"X-Envoy-Attempt-Count": {"3"}, "Grpc-Previous-Rpc-Attempts": {"1"}}, 1},
	}
	for _, tt := range tests {
		if got := attempt(tt.header, tt.headers); got != tt.want {
			t.Errorf("%s: attempt %d, want %d", tt.name, got, tt.want)
		}
	}
}
