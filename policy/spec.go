package policy

import (
	"time"

	"grl/limiter"
)

// Spec is what a policy file says. It is not changed once it is read.
type Spec struct {
	Name  string
	Kind  string // one of Kinds
	Mode  Mode
	Match Match
	// History is how far the policy looks back.
	History time.Duration
	// Cycle says when it runs, in cron syntax in the time zone of Location.
	Cycle string
	// Location is where its hours and days are; UTC if the file names none.
	Location *time.Location
	// Floor and Ceiling bound the limit, in requests per second; 0: none.
	Floor, Ceiling float64
	// Digits is how many significant digits a limit is rounded to; 0: it is not.
	Digits int
	// MaxStep is the share by which a cycle may lower a limit, in (0, 1].
	MaxStep float64
	// PromoteAfter is after how many clean days a candidate becomes the limit;
	// 0: a person promotes.
	PromoteAfter int
	Events       []Event
	Capacity     []Capacity
	Ignore       []Ignore
	Quota        []Quota   // of the kind quota
	Discover     *Discover // nil: it does not
	// SecondOverMinute is the highest second of a minute over the minute's mean,
	// at least 1, for histories that have no seconds; 0: as measured, else 1.
	SecondOverMinute float64
}

// Mode is what becomes of a computed limit. The zero value is Propose.
type Mode uint8

const (
	Propose Mode = iota // a person approves it
	Shadow              // it is written as candidate
	Apply               // it becomes the limit
)

func (m Mode) String() string { return [...]string{"propose", "shadow", "apply"}[m] }

// Match selects buckets; all that is given must match.
type Match struct {
	Service limiter.Pattern
	Caller  limiter.Pattern // of the bucket's own match, which must name a caller
	Bucket  limiter.Pattern // name within the service
}

// Event is a time in which more is expected, or less.
type Event struct {
	Name     string
	From, To time.Time // [From, To)
	Factor   float64   // of the load, in [0.1, 100]
}

// Capacity is what is planned to be there from a time on: a limit above it would
// protect nothing.
type Capacity struct {
	From time.Time
	RPS  float64 // requests per second
}

// Ignore is a time that does not teach: an incident, an attack, an outage.
type Ignore struct {
	From, To time.Time // [From, To)
	Reason   string
	Service  limiter.Pattern // "": of all that the policy computes
}

// Ignores reports whether a time of a service does not teach.
func (s *Spec) Ignores(service string, at time.Time) bool {
	for _, i := range s.Ignore {
		if i.Service.Match(service) && !at.Before(i.From) && at.Before(i.To) {
			return true
		}
	}
	return false
}

// Quota is an agreed limit and when it holds.
type Quota struct {
	RPS      float64            // requests per second
	Regions  map[string]float64 // of single regions; nil: none
	From, To time.Time          // [From, To); zero: without beginning, or end
}

// Discover says that a policy proposes buckets in shadow for services without
// limits.
type Discover struct {
	By     DiscoverBy
	MinRPS float64 // mean of an hour, requests per second
}

// DiscoverBy is what a discovered bucket matches by.
type DiscoverBy uint8

const (
	ByCaller DiscoverBy = iota
	ByProcedure
	ByBoth
)

func (d DiscoverBy) String() string { return [...]string{"caller", "procedure", "both"}[d] }
