package limiter

import (
	"cmp"
	"strings"
)

// Behavior says what happens to the requests that a bucket selects. The zero
// value is Allow, so a bucket without one drops nothing.
type Behavior uint8

const (
	// Allow is shadow mode: virtual drops are counted, nothing is dropped.
	Allow Behavior = iota
	// Deny enforces.
	Deny
)

func (b Behavior) String() string {
	if b == Deny {
		return "deny"
	}
	return "allow"
}

// Scope says over what the load of a bucket is summed. The zero value is
// Global.
type Scope uint8

const (
	Global Scope = iota // one limit for the whole fleet
	Region              // each region gets the limit
	Zone                // each zone gets the limit
)

func (s Scope) String() string {
	switch s {
	case Region:
		return "region"
	case Zone:
		return "zone"
	default:
		return "global"
	}
}

// Enforce says on which side the requests of a service are decided and
// counted. The zero value is Inbound.
type Enforce uint8

const (
	Inbound  Enforce = iota // at the callee
	Outbound                // at its callers
)

func (e Enforce) String() string {
	if e == Outbound {
		return "outbound"
	}
	return "inbound"
}

// Share says how cells that share one limit divide it. The zero value is
// Proportional.
type Share uint8

const (
	Proportional Share = iota // the same drop ratio for all
	MaxMin                    // none gets more while another wants it, by weight
)

func (s Share) String() string {
	if s == MaxMin {
		return "max-min"
	}
	return "proportional"
}

// Names that stand for callers and procedures which have none of their own.
const (
	// UnknownCaller is the caller of a request that names none.
	UnknownCaller = "_unknown"
	// Other stands for all names beyond the bound on distinct ones.
	Other = "_other"
)

// Pattern selects names: "" is absent and selects every name, "*" selects
// every name, a pattern that ends in "*" those that begin with what precedes
// it, and any other exactly itself. Case matters.
type Pattern string

// Match reports whether p selects name.
func (p Pattern) Match(name string) bool {
	if p == "" {
		return true
	}
	if prefix, ok := strings.CutSuffix(string(p), "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return string(p) == name
}

// Match selects requests by caller and procedure; both must match.
type Match struct {
	Caller    Pattern
	Procedure Pattern
}

// Cost says how much one request counts in a bucket. The zero value is 1.
type Cost struct {
	// Fixed is the cost of each request; 0 means 1.
	Fixed uint32
	// Header names the request header (or gRPC metadata key) with the cost;
	// empty: none. A request without it, or with one that is no number from 1
	// to 1,000,000, costs 1.
	Header string
}

// Bucket is one rule of a service: whom it matches, and how much it admits.
type Bucket struct {
	Service string // the callee
	Name    string // unique in the service
	Match   Match
	// PerCaller gives each caller a cell of its own.
	PerCaller bool
	Scope     Scope
	// LimitRPS is the admitted load in requests per second, in [0.001, 1e9];
	// 0 only with Block.
	LimitRPS float64
	// Regions holds the limits of single regions, for Scope Region; nil: none.
	Regions map[string]float64
	// Hourly has the limits of the 24 hours of the day, from midnight on, in
	// place of LimitRPS, which is the most that any may be; nil: none. It
	// excludes Block.
	Hourly []float64
	// RegionHourly has those of regions that Regions has, in place of and at
	// most what it says; nil: none.
	RegionHourly map[string][]float64
	// TimeZone is where the hours are: a name of the IANA time zone database.
	// "" is UTC.
	TimeZone string
	// Block drops everything. It is never a limit of 0.
	Block    bool
	Behavior Behavior
	// Verified makes a request count as UnknownCaller here unless its caller
	// was verified.
	Verified bool
	Cost     Cost
	// Share is how callers divide the limit. MaxMin gives each caller a cell of
	// its own; it excludes PerCaller and Block.
	Share Share
	// Weights has the weights of callers under MaxMin, in [0.001, 1000]; others
	// weigh 1. nil: all do.
	Weights map[string]float64
	// Tiers are classes of requests, from the one that is kept longest to the
	// one that is shed first; nil: none. Each has a cell of its own. They
	// exclude Block.
	Tiers []Tier
	// ShedRetriesFirst gives retries cells of their own, shed before those of
	// first attempts. It excludes Block.
	ShedRetriesFirst bool
	// Coherent draws once for each trace instead of for each request, so that
	// all hops of a journey that drop the same share drop the same journeys;
	// see Coin.FlipTrace. It excludes Block.
	Coherent bool
	// HoldOnSilence keeps the last ratio for as long as nothing is heard.
	HoldOnSilence bool
	// CandidateRPS is a second limit, in requests per second, that is judged
	// beside the enforced one and drops nothing; 0: there is none. It needs
	// Deny, and excludes Block.
	CandidateRPS float64
	// Cap is the cap that the bucket stands for; nil for a configured bucket.
	Cap *Cap
}

// FullName returns the name by which the bucket goes outside its limits file,
// service/name.
func (b *Bucket) FullName() string { return b.Service + "/" + b.Name }

// Limit returns the limit of the bucket's cell in one instance of its scope,
// in requests per second; of a bucket with limits by the hour, the most that it
// may be, see At.
func (b *Bucket) Limit(instance string) float64 {
	if rps, ok := b.Regions[instance]; ok && b.Scope == Region {
		return rps
	}
	return b.LimitRPS
}

// Instance returns the instance of the bucket's scope that a node of zone and
// region belongs to: "" for a global bucket.
func (b *Bucket) Instance(zone, region string) string {
	switch b.Scope {
	case Region:
		return region
	case Zone:
		return zone
	default:
		return ""
	}
}

// CellID names a cell: a bucket in one instance of its scope and, where the
// bucket asks for it, one caller and one class of requests.
type CellID struct {
	Bucket   string // full name
	Instance string // region or zone; "" for a global bucket
	Caller   string // "" unless each caller has a cell
	Class    string // one of Bucket.Classes; "" if there are none
}

// Weight returns what a caller weighs under MaxMin.
func (b *Bucket) Weight(caller string) float64 {
	if w, ok := b.Weights[caller]; ok {
		return w
	}
	return 1
}

// HasCallers reports whether each caller has a cell of its own.
func (b *Bucket) HasCallers() bool { return b.PerCaller || b.Share == MaxMin }

// Divides reports whether several cells share one limit of the bucket.
func (b *Bucket) Divides() bool { return b.Share == MaxMin || b.HasClasses() }

// Gate returns what has the limit that a cell shares with others: the cell's
// name without what divides it.
func (b *Bucket) Gate(id CellID) CellID {
	id.Class = ""
	if b.Share == MaxMin {
		id.Caller = ""
	}
	return id
}

// Service is the content of one service's limits files.
type Service struct {
	Name    string
	Owner   string
	Enforce Enforce
	// Routes are net/http ServeMux patterns that name the HTTP procedures.
	Routes  []string
	Exempt  []Match
	Buckets []Bucket
}

// Configuration is what all limits files say together.
type Configuration struct {
	// Epoch and Revision order configurations; both 0 before the first.
	Epoch    uint64
	Revision uint64
	Services []Service
	// PublicURL is where people reach the dashboard, for the links in
	// refusals; empty: none.
	PublicURL string
	// Serial counts what changed beside the revisions: Caps, AllDisabled and
	// Disabled.
	Serial uint64
	Caps   []Cap
	// AllDisabled stops all dropping, Disabled that of single services.
	AllDisabled bool
	Disabled    []string
}

// Version orders configurations; zero before the first.
type Version struct{ Epoch, Revision, Serial uint64 }

// Version returns that of c.
func (c *Configuration) Version() Version { return Version{c.Epoch, c.Revision, c.Serial} }

// After reports whether v replaces w.
func (v Version) After(w Version) bool {
	return cmp.Or(cmp.Compare(v.Epoch, w.Epoch), cmp.Compare(v.Revision, w.Revision), cmp.Compare(v.Serial, w.Serial)) > 0
}

// Any reports whether c says anything: a limit, or what holds beside limits.
func (c *Configuration) Any() bool { return c.Revision > 0 || c.Serial > 0 }

// Limited returns the names of the services that have limits or a cap.
func (c *Configuration) Limited() map[string]bool {
	names := make(map[string]bool, len(c.Services))
	for i := range c.Services {
		names[c.Services[i].Name] = true
	}
	for i := range c.Caps {
		names[c.Caps[i].Service] = true
	}
	return names
}

// ByName returns the buckets of c by their full names, those that stand for
// caps too.
func (c *Configuration) ByName() map[string]*Bucket {
	m := make(map[string]*Bucket)
	for i := range c.Services {
		for j := range c.Services[i].Buckets {
			b := &c.Services[i].Buckets[j]
			m[b.FullName()] = b
		}
	}
	for i := range c.Caps {
		b := c.Caps[i].Bucket()
		m[b.FullName()] = &b
	}
	return m
}

// HasCell reports whether a node of zone and region may have a cell of that
// name: the instance is its own, and caller and class are what Is asks for.
func (b *Bucket) HasCell(id CellID, zone, region string) bool {
	return id.Instance == b.Instance(zone, region) && b.Is(id)
}

// Is reports whether a cell of that name, of whichever instance, may belong to
// b: there is a caller if and only if each caller has a cell, a class if and
// only if there are classes, and an instance unless the scope is global.
func (b *Bucket) Is(id CellID) bool {
	return id.Bucket == b.FullName() && (id.Instance != "") == (b.Scope != Global) &&
		(id.Caller != "") == b.HasCallers() && b.hasClass(id.Class)
}
