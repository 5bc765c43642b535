package desk

import (
	"context"
	"maps"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy/guard"
)

// Edit is a limit that was computed for a bucket, or a bucket that was found to
// be missing.
type Edit struct {
	Bucket string // full name
	// Before is what the bucket had when it was computed. An edit of a bucket that
	// has something else by now is left out.
	Before, After Limit
	// New is a bucket that is not there yet; nil: it is. Then Before and After are
	// not looked at, and Owner is that of the service if that is new too.
	New   *limiter.Bucket
	Owner string
}

// Limit is what is computed of a bucket. The fields are those of limiter.Bucket.
type Limit struct {
	RPS          float64
	Regions      map[string]float64
	Hourly       []float64
	RegionHourly map[string][]float64
	TimeZone     string
	CandidateRPS float64
}

// LimitOf returns that of a bucket, whose maps and slices it shares.
func LimitOf(b *limiter.Bucket) Limit {
	return Limit{b.LimitRPS, b.Regions, b.Hourly, b.RegionHourly, b.TimeZone, b.CandidateRPS}
}

// Equal reports whether two limits are the same; nil and empty are.
func (l Limit) Equal(other Limit) bool {
	return l.RPS == other.RPS && l.CandidateRPS == other.CandidateRPS && l.TimeZone == other.TimeZone &&
		maps.Equal(l.Regions, other.Regions) && slices.Equal(l.Hourly, other.Hourly) &&
		maps.EqualFunc(l.RegionHourly, other.RegionHourly, slices.Equal)
}

// set makes it that of a bucket.
func (l Limit) set(b *limiter.Bucket) {
	b.LimitRPS, b.CandidateRPS, b.TimeZone = l.RPS, l.CandidateRPS, l.TimeZone
	b.Regions, b.Hourly, b.RegionHourly = nil, nil, nil
	if len(l.Regions) > 0 {
		b.Regions = maps.Clone(l.Regions)
	}
	if len(l.Hourly) > 0 {
		b.Hourly = slices.Clone(l.Hourly)
	}
	if len(l.RegionHourly) > 0 {
		b.RegionHourly = maps.Clone(l.RegionHourly)
	}
}

// editState is what an edit comes to at a head.
type editState uint8

const (
	editOpen       editState = iota // it changes the bucket
	editDone                        // the bucket is so already
	editSuperseded                  // the bucket was changed otherwise
)

// madeEdit is an edit made of a head.
type madeEdit struct {
	after limiter.Bucket
	isNew bool
	owner string // of a new service
}

// of makes the edit of a bucket as it is in head. The error says why the bucket
// would not hold.
func (e *Edit) of(head *snapshot) (madeEdit, editState, error) {
	present := head.bucket(e.Bucket)
	state := e.state(present)
	switch {
	case state != editOpen:
		return madeEdit{}, state, nil
	case e.New != nil:
		m := madeEdit{after: *e.New, isNew: true, owner: e.Owner}
		return m, state, checkBucket(&m.after, e.Owner)
	}
	m := madeEdit{after: *present}
	e.After.set(&m.after)
	return m, state, checkBucket(&m.after, "")
}

// state says what the edit comes to where its bucket is as present; nil: there is
// none.
func (e *Edit) state(present *limiter.Bucket) editState {
	switch {
	case e.New != nil && present == nil:
		return editOpen
	case e.New != nil && limitsfile.BucketText(present) == limitsfile.BucketText(e.New):
		return editDone
	case e.New != nil || present == nil || present.Block:
		return editSuperseded
	case LimitOf(present).Equal(e.After):
		return editDone
	case !LimitOf(present).Equal(e.Before):
		return editSuperseded
	}
	return editOpen
}

// checkBucket lets the reader of limits files judge a bucket by itself.
func checkBucket(b *limiter.Bucket, owner string) error {
	text := limitsfile.Normalize(limiter.Service{Name: b.Service, Owner: owner, Buckets: []limiter.Bucket{*b}})
	if _, err := limitsfile.Parse(b.FullName(), text); err != nil {
		return invalidFiles(err)
	}
	return nil
}

// bucket returns one of a configuration by its full name, nil if there is none.
func (s *snapshot) bucket(name string) *limiter.Bucket {
	service, name, _ := strings.Cut(name, "/")
	if doc := s.documents[service]; doc != nil {
		return doc.bucket(name)
	}
	return nil
}

// assemble makes the configuration with these edits, and returns those that are
// in it: new buckets need not go together with what is there.
func (a *adoption) assemble(head *snapshot, made []madeEdit) ([]madeEdit, *snapshot, error) {
	of := make(map[string][]madeEdit) // service →
	for _, m := range made {
		of[m.after.Service] = append(of[m.after.Service], m)
	}
	changed := make(map[string]*document, len(of))
	var in []madeEdit
	for _, service := range slices.Sorted(maps.Keys(of)) {
		edits, doc, err := a.assembleService(head.documents[service], of[service])
		if err != nil {
			return nil, nil, err
		}
		if doc != nil {
			changed[service] = doc
		}
		in = append(in, edits...)
	}
	return in, head.with(changed), nil
}

// assembleService makes edits of one service, nil if it is not there. New
// buckets that do not hold beside the others are left out, or are an error where
// a person asks for them.
func (a *adoption) assembleService(doc *document, edits []madeEdit) ([]madeEdit, *document, error) {
	next := withEdits(doc, edits)
	services, err := limitsfile.Load([]limitsfile.Source{{Name: next.Name, Data: limitsfile.Normalize(next)}})
	if err == nil {
		return edits, newDocument(services[0]), nil
	}
	if !a.request.Machine {
		return nil, nil, invalidFiles(err)
	}
	var kept []madeEdit
	for _, m := range edits {
		if m.isNew {
			a.refuse(m.after.FullName(), guard.Finding{Bucket: m.after.FullName(), Text: invalidFiles(err).Error()})
		} else {
			kept = append(kept, m)
		}
	}
	switch {
	case len(kept) == 0:
		return nil, nil, nil
	case len(kept) == len(edits):
		return nil, nil, invalidFiles(err)
	default:
		return a.assembleService(doc, kept)
	}
}

// withEdits returns a service with edits.
func withEdits(doc *document, edits []madeEdit) limiter.Service {
	var next limiter.Service
	at := make(map[string]int) // full name → index
	if doc != nil {
		next = *doc.service
		next.Buckets = slices.Clone(next.Buckets)
		for i := range next.Buckets {
			at[next.Buckets[i].FullName()] = i
		}
	} else {
		next = limiter.Service{Name: edits[0].after.Service, Owner: edits[0].owner}
	}
	for _, m := range edits {
		if i, ok := at[m.after.FullName()]; ok {
			next.Buckets[i] = m.after
		} else {
			next.Buckets = append(next.Buckets, m.after)
		}
	}
	return next
}

// Present is the configuration at one moment. Read only.
type Present struct{ head *snapshot }

// Present returns the configuration at the head.
func (d *Desk) Present(ctx context.Context) (Present, error) {
	revision, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return Present{}, err
	}
	head, err := d.readHead(ctx, revision)
	return Present{head}, err
}

// Holds reports whether an edit could be made: its bucket is as it has it
// before.
func (p Present) Holds(e *Edit) bool {
	return e.state(p.head.bucket(e.Bucket)) == editOpen
}

// Buckets returns the full names of all buckets.
func (p Present) Buckets() []string {
	var names []string
	p.head.eachBucket(func(b *limiter.Bucket) { names = append(names, b.FullName()) })
	return names
}
