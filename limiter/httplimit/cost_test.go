package httplimit

import (
	"net/http"
	"slices"
	"testing"

	"grl/limiter"
)

func TestCost(t *testing.T) {
	headers := costHeaders(&limiter.Service{Buckets: []limiter.Bucket{
		{Name: "a"},
		{Name: "b", Cost: limiter.Cost{Header: "x-cost"}},
		{Name: "c", Cost: limiter.Cost{Header: "X-Weight"}},
		{Name: "d", Cost: limiter.Cost{Header: "X-Cost"}},
	}})
	if want := []string{"X-Cost", "X-Weight"}; !slices.Equal(headers, want) {
		t.Fatalf("headers %q, want %q", headers, want)
	}
	tests := []struct {
		name   string
		header http.Header
		want   uint32 // 0: counts as 1
	}{
		{"absent", http.Header{}, 0},
		{"one", http.Header{"X-Cost": {"1"}}, 1},
		{"greatest", http.Header{"X-Cost": {"1000000"}}, 1_000_000},
		{"beyond", http.Header{"X-Cost": {"1000001"}}, 0},
		{"far beyond", http.Header{"X-Cost": {"99999999999999999999"}}, 0},
		{"zero", http.Header{"X-Cost": {"0"}}, 0},
		{"leading zero", http.Header{"X-Cost": {"07"}}, 0},
		{"negative", http.Header{"X-Cost": {"-5"}}, 0},
		{"plus", http.Header{"X-Cost": {"+5"}}, 0},
		{"fraction", http.Header{"X-Cost": {"1.5"}}, 0},
		{"hexadecimal", http.Header{"X-Cost": {"0x10"}}, 0},
		{"space", http.Header{"X-Cost": {"5 "}}, 0},
		{"empty", http.Header{"X-Cost": {""}}, 0},
		{"twice", http.Header{"X-Cost": {"5", "6"}}, 0},
		{"the second header", http.Header{"X-Weight": {"7"}}, 7},
		{"the first valid header", http.Header{"X-Cost": {"x"}, "X-Weight": {"7"}}, 7},
		{"both", http.Header{"X-Cost": {"5"}, "X-Weight": {"7"}}, 5},
	}
	for _, tt := range tests {
		if got := cost(tt.header, headers); got != tt.want {
			t.Errorf("%s: cost %d, want %d", tt.name, got, tt.want)
		}
	}
}
