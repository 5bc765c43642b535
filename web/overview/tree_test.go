package overview

import (
	"strings"
	"testing"
)

func TestNamedZones(t *testing.T) {
	for _, tt := range []struct{ zones, want string }{
		{"", ""},
		{"eu-2", "zone eu-2"},
		{"eu-1 eu-2 us-1", "zones eu-1, eu-2 and us-1"},
		{"region_eu", "region eu"},
		{"region_eu us-1", "zone us-1 and region eu"},
		{"a region_eu us-1", "zones a, us-1 and region eu"},
		{"region_eu region_us", "region eu and region us"},
		{"a b c d e f g h", "zones a, b, c, d, e, f and 2 more"},
	} {
		var zones []string
		for _, z := range strings.Fields(tt.zones) {
			zones = append(zones, strings.ReplaceAll(z, "_", " "))
		}
		if got := namedZones(zones); got != tt.want {
			t.Errorf("namedZones(%q) = %q, want %q", zones, got, tt.want)
		}
	}
}
