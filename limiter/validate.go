package limiter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds on a configuration.
const (
	minLimitRPS = 0.001
	maxLimitRPS = 1e9
	maxBuckets  = 100_000
)

// Validate reports all rules that c breaks, joined into one error; nil if
// there is none.
func (c *Configuration) Validate() error {
	var errs []error
	services := map[string]bool{}
	buckets := map[string]bool{}
	count := 0
	for i := range c.Services {
		s := &c.Services[i]
		if services[s.Name] {
			errs = append(errs, fmt.Errorf("service %q: twice in the configuration", s.Name))
		}
		services[s.Name] = true
		errs = append(errs, s.validate()...)
		for j := range s.Buckets {
			full := s.Name + "/" + s.Buckets[j].Name
			if buckets[full] {
				errs = append(errs, fmt.Errorf("bucket %q: name used twice", full))
			}
			buckets[full] = true
		}
		count += len(s.Buckets)
	}
	if count > maxBuckets {
		errs = append(errs, fmt.Errorf("configuration: %d buckets, at most %d", count, maxBuckets))
	}
	errs = append(errs, c.validateIncident()...)
	return errors.Join(errs...)
}

func (s *Service) validate() []error {
	errs := validateName(fmt.Sprintf("service %q", s.Name), "name", s.Name)
	if s.Enforce > Outbound {
		errs = append(errs, fmt.Errorf("service %q: unknown enforce %d", s.Name, s.Enforce))
	}
	for _, m := range s.Exempt {
		errs = append(errs, validateMatch(fmt.Sprintf("service %q: exempt", s.Name), m)...)
	}
	errs = append(errs, s.validateTierHeader()...)
	// What makes two buckets the same rule twice.
	type rule struct {
		match     Match
		perCaller bool
		scope     Scope
	}
	names := map[rule]string{}
	for i := range s.Buckets {
		b := &s.Buckets[i]
		errs = append(errs, b.validate(s.Name)...)
		r := rule{b.Match, b.PerCaller, b.Scope}
		if first, ok := names[r]; ok {
			errs = append(errs, fmt.Errorf("service %q: buckets %q and %q have the same match, per and scope", s.Name, first, b.Name))
			continue
		}
		names[r] = b.Name
	}
	return errs
}

func (b *Bucket) validate(service string) []error {
	what := fmt.Sprintf("bucket %q", service+"/"+b.Name)
	errs := validateName(what, "name", b.Name)
	if strings.HasPrefix(b.Name, "_") || IsCap(b.Name) {
		errs = append(errs, fmt.Errorf("%s: name begins with _, as grl's own do", what))
	}
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", what, fmt.Sprintf(format, args...)))
	}
	if b.Service != "" && b.Service != service {
		refuse("belongs to service %q", b.Service)
	}
	errs = append(errs, validateMatch(what, b.Match)...)
	if b.Scope > Zone {
		refuse("unknown scope %d", b.Scope)
	}
	if b.Behavior > Deny {
		refuse("unknown behavior %d", b.Behavior)
	}
	if b.Cost.Fixed > maxCost {
		refuse("cost %d is above %d", b.Cost.Fixed, maxCost)
	}
	if b.Cost.Fixed != 0 && b.Cost.Header != "" {
		refuse("cost is both fixed and from a header")
	}
	b.validateLimit(refuse)
	b.validateShare(refuse)
	b.validateTiers(refuse)
	return errs
}

func (b *Bucket) validateLimit(refuse func(format string, args ...any)) {
	switch {
	case b.Block && (b.LimitRPS != 0 || len(b.Regions) > 0):
		refuse("blocks and has a limit")
	case b.Block:
	case b.LimitRPS == 0:
		refuse("limit missing")
	case !validLimit(b.LimitRPS):
		refuse("limit %v is not in [%v, %v] requests per second", b.LimitRPS, minLimitRPS, maxLimitRPS)
	}
	b.validateCandidate(refuse)
	b.validateHourly(refuse)
	if len(b.Regions) > 0 && b.Scope != Region {
		refuse("limits of regions need scope region")
	}
	regions := make([]string, 0, len(b.Regions))
	for region := range b.Regions {
		regions = append(regions, region)
	}
	slices.Sort(regions)
	for _, region := range regions {
		if region == "" {
			refuse("region without a name")
		}
		if rps := b.Regions[region]; !validLimit(rps) {
			refuse("limit %v of region %q is not in [%v, %v] requests per second", rps, region, minLimitRPS, maxLimitRPS)
		}
	}
}

func (b *Bucket) validateCandidate(refuse func(format string, args ...any)) {
	switch {
	case b.CandidateRPS == 0:
	case !validLimit(b.CandidateRPS):
		refuse("candidate %v is not in [%v, %v] requests per second", b.CandidateRPS, minLimitRPS, maxLimitRPS)
	case b.Block:
		refuse("blocks and has a candidate")
	case b.Behavior != Deny:
		refuse("candidate needs behavior deny: a bucket in shadow mode counts what its own limit would drop")
	}
}

// validLimit is false for NaN.
func validLimit(rps float64) bool { return rps >= minLimitRPS && rps <= maxLimitRPS }

func validateName(what, field, name string) []error {
	switch {
	case name == "":
		return []error{fmt.Errorf("%s: %s missing", what, field)}
	case len(name) > maxNameBytes:
		return []error{fmt.Errorf("%s: %s has %d bytes, at most %d", what, field, len(name), maxNameBytes)}
	default:
		return nil
	}
}

// validateMatch lets patterns be absent.
func validateMatch(what string, m Match) []error {
	var errs []error
	for _, p := range []struct {
		field   string
		pattern Pattern
	}{{"caller", m.Caller}, {"procedure", m.Procedure}} {
		if len(p.pattern) > maxNameBytes {
			errs = append(errs, fmt.Errorf("%s: %s pattern has %d bytes, at most %d", what, p.field, len(p.pattern), maxNameBytes))
		}
	}
	return errs
}
