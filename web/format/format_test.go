package format

import (
	"strings"
	"testing"
	"time"
)

func TestFormatRPS(t *testing.T) {
	tests := []struct {
		rps  float64
		want string
	}{
		{0, "0"},
		{-1, "0"},
		{0.0001, "<0.001"},
		{0.001, "0.001"},
		{0.0049, "0.005"},
		{0.00994, "0.010"},
		{0.00996, "0.01"},
		{0.5, "0.50"},
		{1.666, "1.67"},
		{9.99, "9.99"},
		{9.996, "10.0"},
		{40.06, "40.1"},
		{99.94, "99.9"},
		{99.96, "100"},
		{396, "396"},
		{999.6, "1,000"},
		{10_624.3, "10,624"},
		{2_495_647, "2,495,647"},
		{1e9, "1,000,000,000"},
	}
	for _, tt := range tests {
		if got := RPS(tt.rps); got != tt.want {
			t.Errorf("RPS(%v) = %q, want %q", tt.rps, got, tt.want)
		}
	}
}

func TestFormatShare(t *testing.T) {
	tests := []struct {
		share float64 // in [0, 1]
		want  string
	}{
		{0, "0"},
		{1e-9, "<0.001%"},
		{0.00001, "0.001%"},
		{0.000099, "0.010%"},
		{0.0001, "0.01%"},
		{0.0066, "0.66%"},
		{0.00994, "0.99%"},
		{0.00996, "1.0%"},
		{0.0166, "1.7%"},
		{0.153, "15.3%"},
		{1.0 / 3, "33.3%"},
		{0.9994, "99.9%"},
		{0.9996, ">99.9%"},
		{1, "100%"},
	}
	for _, tt := range tests {
		if got := Share(tt.share); got != tt.want {
			t.Errorf("Share(%v) = %q, want %q", tt.share, got, tt.want)
		}
	}
}

func TestFormatAge(t *testing.T) {
	tests := []struct {
		age  time.Duration
		want string
	}{
		{-time.Second, "0.0 s"},
		{0, "0.0 s"},
		{390 * time.Millisecond, "0.3 s"},
		{9990 * time.Millisecond, "9.9 s"},
		{12_900 * time.Millisecond, "12 s"},
		{59_999 * time.Millisecond, "59 s"},
		{9*time.Minute + 36*time.Second, "9 min 36 s"},
		{2*time.Hour + 14*time.Minute + 59*time.Second, "2 h 14 min"},
		{1200 * time.Hour, "1,200 h 0 min"},
	}
	for _, tt := range tests {
		if got := Age(tt.age); got != tt.want {
			t.Errorf("Age(%v) = %q, want %q", tt.age, got, tt.want)
		}
	}
}

func TestFormatCountAndBytes(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 98_412: "98,412", -1234: "−1,234"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 99_940: "99.9 kB", 99_960: "100 kB", 999_499: "999 kB", 999_500: "1.0 MB",
		61_000_000: "61.0 MB", 12_400_000_000: "12.4 GB", 999_500_000_000: "1.0 TB", 1 << 63: "9223372 TB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestNewStamp(t *testing.T) {
	now := time.Date(2026, 11, 29, 21, 40, 2, 0, time.UTC)
	tests := []struct {
		name string
		t    time.Time
		want Stamp
	}{
		{"now", now, Stamp{"2026-11-29T21:40:02Z", "2026-11-29 21:40:02 UTC", "21:40:02 UTC", "21:40 UTC"}},
		{"in another zone", now.In(time.FixedZone("", 3600)), Stamp{"2026-11-29T21:40:02Z", "2026-11-29 21:40:02 UTC", "21:40:02 UTC", "21:40 UTC"}},
		{"within a week", now.AddDate(0, 0, -3), Stamp{"2026-11-26T21:40:02Z", "2026-11-26 21:40:02 UTC", "21:40:02 UTC", "Thu 21:40 UTC"}},
		{"older", now.AddDate(0, -9, -15), Stamp{"2026-02-14T21:40:02Z", "2026-02-14 21:40:02 UTC", "21:40:02 UTC", "14 Feb"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := NewStamp(tt.t, now); got != tt.want {
				t.Errorf("NewStamp = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	const bad = "�"
	for name, want := range map[string]string{
		"payments/writes":        "payments/writes",
		"a→b عربي":               "a→b عربي",
		"a\nb\tc\x00d":           "a" + bad + "b" + bad + "c" + bad + "d",
		"a\xffb":                 "a" + bad + "b",
		"a\u202eb\u2066c":        "a" + bad + "b" + bad + "c",
		"a\u200bb\u2028c":        "a" + bad + "b" + bad + "c",
		" \u00a0":                "\u2423\u2423",
		strings.Repeat("x", 300): strings.Repeat("x", 300),
	} {
		if got := Printable(name); got != want {
			t.Errorf("Printable(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestHeadroom(t *testing.T) {
	for ratio, want := range map[float64]string{
		1.25: "25%", 0.81: "−19%", 0.998: "0%", 1: "0%", 1.004: "0%", 0.9949: "−1%", 0: "−100%", 11: "1,000%", 12: "×12", 1e9: "×1G",
	} {
		if got := Headroom(ratio); got != want {
			t.Errorf("Headroom(%v) = %q, want %q", ratio, got, want)
		}
	}
}
