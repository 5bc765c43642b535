package page

import (
	"context"
	"time"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/proto/grl/v1/grlv1connect"
)

// Backend is where pages get their numbers. Its methods may be called
// concurrently. What they return belongs to neither side: pages do not change
// it, and the backend must not change it afterwards.
type Backend interface {
	// Cells returns a row for each cell of a bucket or cap, in any order, at most
	// a second old.
	Cells() []Cell
	// Fleet returns the state of the tree.
	Fleet() Fleet
	// Counts returns what the navigation says.
	Counts() Counts
	// Total returns what the fleet is offered now, in which a request counts once.
	Total() Load
	// Parts returns what a bucket is offered now, by zone, the largest first;
	// instance selects one of its cells, "" all of them.
	Parts(bucket, instance string) []Part
	// Series returns a line of points of what was counted. The bucket "" is the
	// fleet, in which a request counts once. Reading the history may take a
	// moment, and fail.
	Series(ctx context.Context, q SeriesQuery) (Series, error)
	// Sparks returns, for each cell, what it was offered in the last day: 72
	// means over 20 minutes in requests per second, NaN where nothing is known.
	Sparks(ctx context.Context, cells []limiter.CellID) ([][]float64, error)
	// Limits returns the limits that a bucket had at an instance since a time, in
	// order; the first one is that which held then.
	Limits(ctx context.Context, bucket, instance string, since time.Time) ([]LimitChange, error)
	// Usual returns the median of the highest minute at this hour of the day over
	// the last 4 weeks, of requests to a service that match, in requests per
	// second; false: no bucket counts just these.
	Usual(ctx context.Context, service string, match limiter.Match) (rps float64, known bool, err error)
	// Past returns what was last computed from the history of all cells.
	Past() *Past
}

// Load is what happens to requests now, in requests per second. Requests that no
// limit matches are not among them. docs/decisions/0026-dashboard-figures.md says
// where it is exact.
type Load struct {
	OfferedRPS          float64 // admitted and dropped
	AdmittedRPS         float64
	DroppedRPS          float64
	ShadowDroppedRPS    float64 // part of admitted
	CandidateDroppedRPS float64 // that candidates would drop of what is admitted
}

// Virtual is what would be dropped and is not, at most what is admitted.
func (l *Load) Virtual() float64 {
	return min(l.ShadowDroppedRPS+l.CandidateDroppedRPS, l.AdmittedRPS)
}

// Counts is what the navigation says of each page.
type Counts struct {
	Buckets  int
	Shadow   int // buckets in shadow, and candidates
	Caps     int // that run
	Policies int
	Waiting  int // proposals of the RLC
	Firing   int // alerts
}

// Part is the share of one zone in a bucket now, in requests per second.
type Part struct {
	Zone, Region     string
	OfferedRPS       float64
	DroppedRPS       float64
	ShadowDroppedRPS float64
	Hosts            int
	Silent           bool          // nothing is heard of the zone
	Counted          bool          // of a silent zone: the rates are its last known ones; else it has none
	SilentFor        time.Duration // of a zone that is silent
	AutonomousFor    time.Duration // it still enforces its last share; 0: no more
	Share            float64       // of the global limit that it has alone, in [0, 1]
}

// SeriesQuery asks for what cells of one bucket counted.
type SeriesQuery struct {
	Bucket string // full name; "": the fleet
	// Instance and Caller select cells; "": all of them together.
	Instance, Caller string
	// Zone selects what came from one zone; "": all together.
	Zone string
	From time.Time // cut to a whole step
	To   time.Time
	Step time.Duration // whole minutes
}

// Series is a line of points at equal steps. All are means over the step in
// requests per second, but for HighestSecond, which is requests in the highest
// second. A point of which nothing is known is NaN.
type Series struct {
	From time.Time
	Step time.Duration
	// All of one length.
	Offered, Admitted, Dropped, ShadowDropped, CandidateDropped, HighestSecond []float64
}

// LimitChange is a limit from a time on.
type LimitChange struct {
	At           time.Time
	LimitRPS     float64 // 0: there was no bucket, or it blocks
	CandidateRPS float64 // 0: none
	Behavior     limiter.Behavior
	Block        bool
	Revision     uint64 // 0: it is older than what is looked at
	Author       string
}

// Past is what is computed from the history of all cells each minute.
type Past struct {
	// At is when; zero: not yet.
	At time.Time
	// Read is how much of the history was read since the start, in [0, 1].
	Read float64
	// LeftOut is how many cells with history are beyond what is kept.
	LeftOut int
	// Headroom has the cells of enforced buckets with a limit, those that came
	// nearest to it in the last 7 days first.
	Headroom []Headroom
	// Evidence has each cell that is not enforced, and each candidate, by name.
	Evidence []Evidence
}

// Headroom is how near a cell came to its limit.
type Headroom struct {
	Cell limiter.CellID
	// Days has the highest second of each of the last 7 days, UTC, today last, as
	// a share of the limit that the cell had in that hour; NaN: nothing is known.
	Days [7]float64
}

// Evidence is what a limit that is not enforced would have done.
type Evidence struct {
	Cell      limiter.CellID
	Candidate bool    // of a bucket that is enforced by another limit
	LimitRPS  float64 // that is judged
	// Since is when this very limit began to be judged.
	Since time.Time
	verdict.Verdict
	// Curve has what was offered in the highest second of equal parts of the time
	// judged, at most 72; NaN: nothing is known.
	Curve []float32
	// HitCaller is who would have lost most in the last day, and how much of that
	// it was, in [0, 1]; "": not known.
	HitCaller string
	HitShare  float64
}

// Services are what pages call to change things, and to read what belongs to
// them: those of the public API, in process. Who calls is in the context; each
// decides again who may.
type Services struct {
	View grlv1connect.ViewServiceHandler
	// Elsewhere says where the others are, if they are not here: at the parent of
	// a regional controller. Then those are nil.
	Elsewhere string

	Config   grlv1connect.ConfigServiceHandler
	Incident grlv1connect.IncidentServiceHandler
	Audit    grlv1connect.AuditServiceHandler
	Policy   grlv1connect.PolicyServiceHandler
	RLC      grlv1connect.RLCServiceHandler
	Alert    grlv1connect.AlertServiceHandler
	// Audited returns what was found when the audit was last gone through; nil:
	// nobody does.
	Audited func() AuditCheck
}
