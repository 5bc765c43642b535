package limiter

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds on what holds beside the revisions.
const (
	maxCaps       = 1000
	maxCapIDBytes = 64
	// maxCapText bounds author and reason.
	maxCapText  = 1 << 10
	maxDisabled = 10_000
)

func (c *Configuration) validateIncident() []error {
	var errs []error
	if len(c.Caps) > maxCaps {
		return append(errs, fmt.Errorf("configuration: %d caps, at most %d", len(c.Caps), maxCaps))
	}
	ids := map[string]bool{}
	for i := range c.Caps {
		p := &c.Caps[i]
		if ids[p.ID] {
			errs = append(errs, fmt.Errorf("cap %.100q: id used twice", p.ID))
		}
		ids[p.ID] = true
		errs = append(errs, p.Validate()...)
	}
	if len(c.Disabled) > maxDisabled {
		return append(errs, fmt.Errorf("configuration: %d services disabled, at most %d", len(c.Disabled), maxDisabled))
	}
	for _, name := range c.Disabled {
		errs = append(errs, validateName("disabled service", "name", name)...)
	}
	return errs
}

// Validate returns all rules that c breaks; none: it holds. How long a cap may
// last is for who places it.
func (c *Cap) Validate() []error {
	what := fmt.Sprintf("cap %.100q", c.ID)
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", what, fmt.Sprintf(format, args...)))
	}
	if c.ID == "" || len(c.ID) > maxCapIDBytes || strings.Trim(c.ID, tierNameBytes) != "" {
		refuse("its id is not 1 to %d letters, digits, - and _", maxCapIDBytes)
	}
	if err := CheckName(c.Service); err != nil {
		refuse("service: %v", err)
	}
	errs = append(errs, validateMatch(what, c.Match)...)
	b := Bucket{LimitRPS: c.LimitRPS, Block: c.Block}
	b.validateLimit(refuse)
	for _, text := range []struct{ field, is string }{{"author", c.Author}, {"reason", c.Reason}} {
		if len(text.is) > maxCapText || !utf8.ValidString(text.is) {
			refuse("%s of %d bytes, not at most %d of UTF-8", text.field, len(text.is), maxCapText)
		}
	}
	if c.Ends.IsZero() {
		refuse("no end")
	}
	return errs
}
