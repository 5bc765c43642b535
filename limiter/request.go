package limiter

// Request is one request as the decision sees it. Zero values mean cost 1,
// first attempt, no tier, no trace, not verified.
type Request struct {
	Service   string // the callee
	Caller    string // the service that sends it; "" counts as UnknownCaller
	Procedure string // pkg.Service/Method, or METHOD /route/{template}
	// Cost counts in buckets whose cost comes from a header; 0 means 1, and
	// more than 1,000,000 means that.
	Cost uint32
	// Attempt is 0 for the first attempt.
	Attempt uint32
	// Tier is what the request's header says of its tier, as Service.Tier
	// returns it; 0: nothing, and so is what the configuration does not have.
	Tier uint32
	// TraceID identifies the user's journey; the zero value: none. It matters
	// in coherent buckets.
	TraceID [16]byte
	// Verified says that the caller's identity was proved, not claimed.
	Verified bool
}

// Decision is what to do with a request. The zero value admits it.
type Decision struct {
	// Dropped says that the request must be answered at once with a refusal.
	Dropped bool
	class   uint8 // place among the classes of Bucket
	// Bucket is the bucket that dropped it; nil when admitted. Read only.
	Bucket *Bucket
	// Service is the configuration Bucket belongs to; nil when admitted, and
	// for a cap on a service that has none.
	Service *Service
	// No more fields: of more than four, or 32 bytes, Go returns a struct through
	// memory, and each decision costs half as much again.
}

// Class returns that of a dropped request, one of Bucket.Classes; "" if there are
// none.
func (d Decision) Class() string {
	if d.Bucket == nil || !d.Bucket.HasClasses() {
		return ""
	}
	return d.Bucket.Classes()[d.class]
}
