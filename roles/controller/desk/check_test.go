package desk

import (
	"strings"
	"testing"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

// What is too much together with what is there.
func TestCheckReceivable(t *testing.T) {
	service := func(name string, buckets, size int) *document {
		return &document{service: &limiter.Service{Name: name, Buckets: make([]limiter.Bucket, buckets)}, size: size}
	}
	tests := []struct {
		name string
		a, b *document
		want string
	}{
		{"just fits", service("a", limitsfile.MaxBuckets-1, maxMessage-1), service("b", 1, 1), ""},
		{"one bucket more", service("a", limitsfile.MaxBuckets, 0), service("b", 1, 0), "100001 buckets with those that are there, at most 100000"},
		{"one byte more", service("a", 0, maxMessage), service("b", 0, 1), "no node would take them"},
	}
	for _, tt := range tests {
		s := &snapshot{documents: map[string]*document{"a": tt.a, "b": tt.b}}
		err := s.checkReceivable(nil)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestLaneIsBounded(t *testing.T) {
	l := lane{Services: map[string]uint64{}}
	for len(l.Services) < 20_000 {
		l.Services[strings.Repeat("x", 20)+string(rune('a'+len(l.Services)))] = 1
	}
	if _, err := l.text(); err == nil {
		t.Error("a lane of 20,000 services was taken")
	}
}
