package simulate

import (
	"math"
	"testing"

	"grl/roles/fleet"
)

func TestMetricsAreThoseOfTheFleet(t *testing.T) {
	list := fleet.Metrics{}.List()
	if len(list) != len(Metrics()) {
		t.Fatalf("%d metrics, the fleet has %d", len(Metrics()), len(list))
	}
	for i, m := range Metrics() {
		if m.Name != list[i].Name {
			t.Errorf("metric %d is %s, that of the fleet %s", i, m.Name, list[i].Name)
		}
	}
}

func TestFormat(t *testing.T) {
	m := Metric{decimals: 2}
	for _, tt := range []struct {
		v    float64
		want string
	}{
		{0.664, "0.66"},
		{0, "0.00"},
		{-0.001, "0.00"},
		{-0.006, "-0.01"},
		{1234567.891, "1,234,567.89"},
		{-1234, "-1,234.00"},
		{math.Inf(1), "never"},
		{math.NaN(), "–"},
	} {
		if got := m.format(tt.v); got != tt.want {
			t.Errorf("format(%v) = %q, want %q", tt.v, got, tt.want)
		}
	}
}

func TestRPS(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.000", 0.0012: "0.001", 0.9995: "1.00", 5: "5.00", 9.995: "10.0", 99.94: "99.9", 99.95: "100", 44_000: "44,000",
	} {
		if got := rps(v); got != want {
			t.Errorf("rps(%v) = %q, want %q", v, got, want)
		}
	}
}
