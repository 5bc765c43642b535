package limiter

import (
	"errors"
	"fmt"
	"strings"
)

// CheckName returns what keeps name from being the name of a service, zone or
// region: it has 1 to 256 letters, digits and characters of . _ : / - and
// begins with a letter or digit. nil: nothing does.
func CheckName(name string) error {
	if name == "" {
		return errors.New("empty")
	}
	if len(name) > maxNameBytes {
		return fmt.Errorf("%d bytes, at most %d", len(name), maxNameBytes)
	}
	for i, r := range name {
		alphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alphanumeric && (i == 0 || !strings.ContainsRune("._:/-", r)) {
			return fmt.Errorf("%q is no name: it has letters, digits and . _ : / - and begins with a letter or digit", name)
		}
	}
	return nil
}
