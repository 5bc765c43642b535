package ledger

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Change is the configuration as it shall be.
type Change struct {
	Act
	// Action, Subjects, Before and After are for the audit entry: "apply",
	// "rollback", "promote"; full names of buckets; what they were and are.
	Action        string
	Subjects      []string
	Before, After string
	// Documents holds the normalised YAML of every service by the service's
	// name: the whole configuration, not a difference.
	Documents map[string][]byte
	// Sources are remembered with the revision that is head afterwards, each
	// with the hash of its content, even if the configuration is the same; see
	// LastSource. The first one names the revision's source, and its hash has at
	// most 256 bytes. nil: none.
	Sources []Source
	// Rollout is written with the revision, whose number it gets; nil: it goes
	// everywhere at once, and a rollout under way ends.
	Rollout *Rollout
}

const (
	// MaxSources bounds the sources of a change.
	MaxSources = 20
	// MaxSourceText bounds the hashes of all sources of a change together, in
	// bytes. As JSON they may take twice that, and the commit has more.
	MaxSourceText = 384 << 10
	// maxService bounds the name of a service, in bytes.
	maxService = 256
)

func (c *Change) validate() error {
	errs := []error{c.Act.validate()}
	if c.Action == "" {
		errs = append(errs, errors.New("action missing"))
	}
	for service := range c.Documents {
		if service == "" || len(service) > maxService || !utf8.ValidString(service) {
			errs = append(errs, fmt.Errorf("service %q: no name of 1 to %d bytes", service, maxService))
		}
	}
	errs = append(errs, checkSources(c.Sources))
	if c.Rollout != nil {
		errs = append(errs, c.Rollout.validate())
	}
	return errors.Join(errs...)
}

func checkSources(sources []Source) error {
	if len(sources) > MaxSources {
		return fmt.Errorf("%d sources, at most %d", len(sources), MaxSources)
	}
	var errs []error
	size := 0
	for i, s := range sources {
		errs = append(errs, checkTexts(s.Name))
		if i == 0 {
			errs = append(errs, checkTexts(s.Hash)) // each revision has it
		}
		if !utf8.ValidString(s.Hash) || strings.ContainsFunc(s.Hash, unicode.IsControl) {
			errs = append(errs, fmt.Errorf("source %q: its hash is no text on one line", s.Name))
		}
		size += len(s.Hash)
	}
	if size > MaxSourceText {
		errs = append(errs, fmt.Errorf("%w: sources with hashes of %d bytes, at most %d", ErrTooMany, size, MaxSourceText))
	}
	return errors.Join(errs...)
}
