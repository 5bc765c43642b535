package httplimit

import (
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const (
	aTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	aParent = "00f067aa0ba902b7"
)

var traceParents = []struct {
	name, value string
	ok          bool
}{
	{"sampled", "00-" + aTrace + "-" + aParent + "-01", true},
	{"not sampled", "00-" + aTrace + "-" + aParent + "-00", true},
	{"flags of a later version", "00-" + aTrace + "-" + aParent + "-ff", true},
	{"a later version", "01-" + aTrace + "-" + aParent + "-01", true},
	{"a later version with more", "cc-" + aTrace + "-" + aParent + "-01-what-the-future-will-be", true},
	{"a later version, more without a dash", "cc-" + aTrace + "-" + aParent + "-01.what", false},
	{"version ff", "ff-" + aTrace + "-" + aParent + "-01", false},
	{"version 00 with more", "00-" + aTrace + "-" + aParent + "-01-more", false},
	{"upper case", "00-" + strings.ToUpper(aTrace) + "-" + aParent + "-01", false},
	{"upper case in the parent", "00-" + aTrace + "-" + strings.ToUpper(aParent) + "-01", false},
	{"trace id zero", "00-" + strings.Repeat("0", 32) + "-" + aParent + "-01", false},
	{"parent id zero", "00-" + aTrace + "-0000000000000000-01", false},
	{"no version", aTrace + "-" + aParent + "-01", false},
	{"version of one digit", "0-" + aTrace + "-" + aParent + "-01", false},
	{"short trace id", "00-" + aTrace[1:] + "-" + aParent + "-01", false},
	{"no flags", "00-" + aTrace + "-" + aParent, false},
	{"flags of one digit", "00-" + aTrace + "-" + aParent + "-1", false},
	{"no hexadecimal", "00-" + aTrace[:31] + "g-" + aParent + "-01", false},
	{"other dashes", "00_" + aTrace + "_" + aParent + "_01", false},
	{"empty", "", false},
}

func TestTraceID(t *testing.T) {
	for _, tt := range traceParents {
		want := ""
		if tt.ok {
			want = aTrace
		}
		got := traceID(http.Header{"Traceparent": {tt.value}})
		if got != [16]byte{} != tt.ok || tt.ok && hex.EncodeToString(got[:]) != want {
			t.Errorf("%s: %q has the trace id %x, want %q", tt.name, tt.value, got, want)
		}
	}
	good := traceParents[0].value
	if got := traceID(http.Header{"Traceparent": {good, good}}); got != [16]byte{} {
		t.Errorf("a header that comes twice has the trace id %x, want none", got)
	}
	h := http.Header{"Traceparent": {good}}
	if n := testing.AllocsPerRun(100, func() { traceID(h) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzTraceParent compares with the form as a regular expression.
func FuzzTraceParent(f *testing.F) {
	for _, tt := range traceParents {
		f.Add(tt.value)
	}
	form := regexp.MustCompile(`(?s)^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := parseTraceParent(s)
		m := form.FindStringSubmatch(s)
		want := m != nil && m[1] != "ff" && (m[1] != "00" || m[5] == "") &&
			strings.Trim(m[2], "0") != "" && strings.Trim(m[3], "0") != ""
		if ok != want || ok && hex.EncodeToString(id[:]) != m[2] || !ok && id != [16]byte{} {
			t.Errorf("parseTraceParent(%q) = %x, %v, want %v", s, id, ok, want)
		}
	})
}
