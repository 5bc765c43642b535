package api

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store"
	"grl/store/ledger"
)

// findings is what a run found, by bucket, in the order in which it did.
type findings struct {
	run     ledger.Run
	results []*grlv1.RunResult
	at      map[string]int // bucket → index of results
}

// find returns what a run found, with what was decided of it. A result that was
// recorded again replaces the one before.
func (o *Options) find(ctx context.Context, id uint64) (*findings, error) {
	run, err := o.Ledger.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	f := &findings{run: run, at: make(map[string]int)}
	err = o.Ledger.Results(ctx, id, func(r ledger.Result) error {
		m := &grlv1.RunResult{}
		if err := proto.Unmarshal(r.Data, m); err != nil {
			return fmt.Errorf("result of %q: %w: %w", r.Bucket, store.ErrDamaged, err)
		}
		i, again := f.at[r.Bucket]
		if !again {
			i = len(f.results)
			f.at[r.Bucket] = i
			f.results = append(f.results, nil)
		}
		f.results[i] = m
		return nil
	})
	if err != nil {
		return nil, err
	}
	decisions, err := o.Ledger.Decisions(ctx, id)
	if err != nil {
		return nil, err
	}
	for bucket, d := range decisions {
		if i, ok := f.at[bucket]; ok {
			decided(f.results[i], d)
		}
	}
	return f, nil
}

// of returns the result of a bucket, nil if there is none.
func (f *findings) of(bucket string) *grlv1.RunResult {
	if i, ok := f.at[bucket]; ok {
		return f.results[i]
	}
	return nil
}

// decided puts a decision into a result.
func decided(m *grlv1.RunResult, d ledger.Decision) {
	m.DecidedBy, m.DecidedAtMs, m.Revision = clean(d.By), millis(d.At), d.Revision
	switch d.State {
	case ledger.Approved:
		m.State = grlv1.ProposalState_PROPOSAL_STATE_APPROVED
	case ledger.Rejected:
		m.State = grlv1.ProposalState_PROPOSAL_STATE_REJECTED
	case ledger.Superseded:
		m.State = grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED
	}
}

// pending reports whether a result waits for a person.
func pending(m *grlv1.RunResult) bool {
	return m.GetOutcome() == grlv1.RunOutcome_RUN_OUTCOME_PROPOSED &&
		(m.GetState() == grlv1.ProposalState_PROPOSAL_STATE_PENDING || m.GetState() == grlv1.ProposalState_PROPOSAL_STATE_UNSPECIFIED)
}

// toEdit returns what a result asks for. The error is for the caller.
func toEdit(m *grlv1.RunResult) (desk.Edit, error) {
	if m.GetAfter() == nil {
		return desk.Edit{}, invalid("results", "%q has no limit", m.GetBucket())
	}
	e := desk.Edit{Bucket: m.GetBucket(), Before: toLimit(m.GetBefore()), After: toLimit(m.GetAfter())}
	if m.GetNewBucket() != "" {
		var err error
		if e.New, err = toBucket(m.GetBucket(), m.GetNewBucket()); err != nil {
			return desk.Edit{}, err
		}
	}
	return e, nil
}

func toLimit(m *grlv1.ComputedLimit) desk.Limit {
	l := desk.Limit{
		RPS: m.GetRps(), Regions: m.GetRegionsRps(), Hourly: m.GetHourlyRps(), TimeZone: m.GetTimeZone(), CandidateRPS: m.GetCandidateRps(),
	}
	if len(m.GetRegionsHourly()) > 0 {
		l.RegionHourly = make(map[string][]float64, len(m.GetRegionsHourly()))
		for region, hours := range m.GetRegionsHourly() {
			l.RegionHourly[region] = hours.GetRps()
		}
	}
	return l
}

// toBucket reads a bucket as in a limits file, at the margin.
func toBucket(fullName, text string) (*limiter.Bucket, error) {
	service, _, _ := strings.Cut(fullName, "/")
	file := "service: " + service + "\nbuckets:\n  - " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
	services, err := limitsfile.Load([]limitsfile.Source{{Name: fullName, Data: []byte(file)}})
	if err != nil {
		return nil, invalid("new_bucket", "%v", err)
	}
	if len(services) != 1 || len(services[0].Buckets) != 1 || services[0].Buckets[0].FullName() != fullName {
		return nil, invalid("new_bucket", "is not the bucket %q alone", fullName)
	}
	return &services[0].Buckets[0], nil
}

// wish is a hash of what a result would have of its bucket.
func wish(m *grlv1.RunResult) uint64 {
	limit := m.GetAfter()
	if limit == nil {
		limit = m.GetBefore()
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(limit)
	if err != nil {
		return 0 // it was read from what was written, so it can be written
	}
	h := fnv.New64a()
	h.Write(data)
	h.Write([]byte(m.GetNewBucket()))
	return h.Sum64()
}

func fromRun(r ledger.Run) *grlv1.Run {
	m := &grlv1.Run{
		Id: r.ID, Trigger: clean(r.Trigger), RequestId: clean(r.RequestID), Author: clean(r.Author), Configurator: clean(r.Configurator),
		DryRun: r.DryRun, StartedAtMs: millis(r.StartedAt), FinishedAtMs: millis(r.FinishedAt), Source: clean(r.Source),
		PolicyRevision: r.PolicyRevision, BaseRevision: r.BaseRevision, Revision: r.Revision, Commit: clean(r.Commit),
		Error: clean(r.Error), Done: r.Done, Buckets: r.Buckets, Outcomes: r.Outcomes, Verified: clean(r.Verified),
	}
	switch r.State {
	case ledger.RunRunning:
		m.State = grlv1.Run_STATE_RUNNING
	case ledger.RunDone:
		m.State = grlv1.Run_STATE_DONE
	case ledger.RunFailed:
		m.State = grlv1.Run_STATE_FAILED
	}
	return m
}

func toRun(m *grlv1.Run) ledger.Run {
	r := ledger.Run{
		Trigger: m.GetTrigger(), RequestID: m.GetRequestId(), Author: m.GetAuthor(), Configurator: m.GetConfigurator(),
		DryRun: m.GetDryRun(), Source: m.GetSource(), PolicyRevision: m.GetPolicyRevision(), BaseRevision: m.GetBaseRevision(),
		Buckets: m.GetBuckets(),
	}
	if at := m.GetStartedAtMs(); at > 0 && at < maxMillis {
		r.StartedAt = time.UnixMilli(at)
	}
	return r
}

// maxMillis is in the year 9999, beyond which no time can be written.
const maxMillis = 253_000_000_000_000

// count returns how many results have each outcome.
func (f *findings) count() []uint32 {
	var counts []uint32
	for _, m := range f.results {
		counts = counted(counts, m.GetOutcome())
	}
	return counts
}

func counted(counts []uint32, o grlv1.RunOutcome) []uint32 {
	if _, known := grlv1.RunOutcome_name[int32(o)]; !known {
		o = grlv1.RunOutcome_RUN_OUTCOME_UNSPECIFIED
	}
	for len(counts) <= int(o) {
		counts = append(counts, 0)
	}
	counts[o]++
	return counts
}
