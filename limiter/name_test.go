package limiter

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"payments":               true,
		"eu-1.a_b:c/d":           true,
		"7":                      true,
		"":                       false,
		"_unknown":               false,
		"my svc":                 false,
		"naïve":                  false,
		"a\xff":                  false,
		strings.Repeat("n", 256): true,
		strings.Repeat("n", 257): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v, want valid %v", name, err, ok)
		}
	}
}
