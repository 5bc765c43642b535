package ledger

import (
	"errors"
	"fmt"
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
	// LastSource. The first one names the revision's source. nil: none.
	Sources []Source
	// Rollout is written with the revision, whose number it gets; nil: it goes
	// everywhere at once, and a rollout under way ends.
	Rollout *Rollout
}

// MaxSources bounds the sources of a change, and maxService the name of a
// service in bytes.
const (
	MaxSources = 20
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
	if len(c.Sources) > MaxSources {
		errs = append(errs, fmt.Errorf("%d sources, at most %d", len(c.Sources), MaxSources))
	}
	for _, s := range c.Sources {
		errs = append(errs, checkTexts(s.Name, s.Hash))
	}
	if c.Rollout != nil {
		errs = append(errs, c.Rollout.validate())
	}
	return errors.Join(errs...)
}
