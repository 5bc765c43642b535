package configurator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
	"grl/roles/configurator/history"
)

const (
	// workers compute at once: each holds the history of one bucket.
	workers = 2
	// recordAt is how many results are recorded at once.
	recordAt = 200
	// memoryBytes is how much of what was learnt is recorded at once, in bytes.
	memoryBytes = 1 << 20
	// memoriesAt is of how many buckets what was learnt is read at once.
	memoriesAt = 500
)

// content is the configuration and the policies of one moment.
type content struct {
	revision, policies uint64
	services           []limiter.Service
	specs              []policy.Spec
	texts              map[string]string // policy → the hash of its file
}

// read returns what is configured now.
func (c *Configurator) read(ctx context.Context) (content, error) {
	var config *grlv1.GetConfigurationResponse
	var policies *grlv1.GetPoliciesResponse
	err := c.group.do(ctx, func(ctx context.Context, to conn) (err error) {
		policies, err = to.policies.GetPolicies(ctx, &grlv1.GetPoliciesRequest{})
		if err != nil || len(policies.GetPolicies()) == 0 {
			return err
		}
		config, err = to.config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{})
		return err
	})
	if err != nil {
		return content{}, fmt.Errorf("read the configuration: %w", err)
	}
	if len(policies.GetPolicies()) == 0 { // nothing to compute: spare reading the configuration
		return content{policies: policies.GetRevision().GetNumber()}, nil
	}
	now := content{
		revision: config.GetRevision().GetNumber(), policies: policies.GetRevision().GetNumber(), texts: make(map[string]string),
	}
	if now.services, err = limitsfile.Load(sources(config.GetFiles())); err != nil {
		return content{}, fmt.Errorf("read r%d: %w", now.revision, err)
	}
	for _, p := range policies.GetPolicies() {
		spec, err := policyfile.Parse(p.GetName(), p.GetData())
		if err != nil {
			return content{}, fmt.Errorf("read policy %q: %w", p.GetName(), err)
		}
		now.specs = append(now.specs, spec)
		now.texts[spec.Name] = hashOf(p.GetData())
	}
	return now, nil
}

// cycle is one run under way.
type cycle struct {
	*Configurator
	now      time.Time
	content  content
	run      *grlv1.Run
	work     []compute.Work
	memories map[string]compute.Memory // bucket → what was learnt before
	specs    map[string]*policy.Spec   // bucket → that computes it

	mu      sync.Mutex            // guards all below
	results []*grlv1.RunResult    // not recorded yet
	steps   []*grlv1.BucketMemory // from where limits are lowered: known before they are
	learnt  []*grlv1.BucketMemory
	changes []sentence // of what may change
}

// sentence is what was computed of a bucket, for the message of a commit.
type sentence struct{ bucket, policy, reason string }

// selection is which buckets a cycle computes, and why.
type selection struct {
	trigger string
	request *grlv1.RunRequest // nil: nobody asked for it
	wanted  func(compute.Work, compute.Memory) bool
	// discovers reports whether a policy looks for services without limits.
	discovers func(*policy.Spec) bool
}

// cycle computes what is selected. It reports whether there was anything.
func (c *Configurator) cycle(ctx context.Context, now content, s selection) (bool, error) {
	y := &cycle{Configurator: c, now: time.Now().UTC(), content: now, memories: make(map[string]compute.Memory), specs: make(map[string]*policy.Spec)}
	if err := y.plan(ctx, s); err != nil {
		return false, err
	}
	found, err := y.discover(ctx, s)
	if err != nil {
		return false, err
	}
	if len(y.work)+len(found) == 0 && s.request == nil {
		return false, nil
	}
	if err := y.begin(ctx, s, len(found)); err != nil {
		return false, err
	}
	y.results = found
	for _, r := range found {
		y.changes = append(y.changes, sentence{r.GetBucket(), r.GetPolicy(), r.GetReason()})
	}
	err = y.computeAll(ctx)
	if err == nil && !y.run.GetDryRun() {
		err = y.publish(ctx)
	}
	return true, y.finish(ctx, err)
}

// plan finds the work, and what was learnt of it.
func (y *cycle) plan(ctx context.Context, s selection) error {
	all := compute.Plan(y.content.services, y.content.specs)
	for batch := range slices.Chunk(all, memoriesAt) {
		request := &grlv1.GetMemoryRequest{}
		for _, w := range batch {
			request.Buckets = append(request.Buckets, w.Bucket.FullName())
		}
		var answer *grlv1.GetMemoryResponse
		if err := y.group.do(ctx, func(ctx context.Context, to conn) (err error) {
			answer, err = to.GetMemory(ctx, request)
			return err
		}); err != nil {
			return fmt.Errorf("read what was learnt: %w", err)
		}
		for _, m := range answer.GetMemories() {
			memory, err := compute.ParseMemory(m.GetData())
			if err != nil {
				y.opts.Log.WarnContext(ctx, "what was learnt of a bucket is lost; its buffer begins anew", "bucket", m.GetBucket(), "err", err)
				continue
			}
			y.memories[m.GetBucket()] = memory.At(y.now)
		}
	}
	for _, w := range all {
		name := w.Bucket.FullName()
		if s.wanted(w, y.memories[name]) {
			y.work = append(y.work, w)
			y.specs[name] = w.Spec
		} else {
			delete(y.memories, name)
		}
	}
	return nil
}

// begin opens the run at the controller.
func (y *cycle) begin(ctx context.Context, s selection, found int) error {
	y.run = &grlv1.Run{
		State: grlv1.Run_STATE_RUNNING, Trigger: s.trigger, RequestId: s.request.GetId(), Author: s.request.GetAuthor(), DryRun: s.request.GetDryRun(),
		Configurator: y.holder, StartedAtMs: y.now.UnixMilli(), Source: y.source.Name(),
		PolicyRevision: y.content.policies, BaseRevision: y.content.revision, Buckets: uint32(len(y.work) + found),
	}
	err := y.group.do(ctx, func(ctx context.Context, to conn) error {
		answer, err := to.BeginRun(ctx, &grlv1.BeginRunRequest{Holder: y.holder, Run: y.run})
		y.run.Id = answer.GetId()
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a run: %w", err)
	}
	y.opts.Log.InfoContext(ctx, "cycle begins", "run", y.run.GetId(), "trigger", s.trigger, "buckets", len(y.work), "dry_run", y.run.GetDryRun())
	y.progress(0)
	return nil
}

// progress shows that so many results more are recorded.
func (y *cycle) progress(more int) {
	y.Configurator.mu.Lock()
	defer y.Configurator.mu.Unlock()
	y.status.Run, y.status.Buckets = y.run.GetId(), y.run.GetBuckets()
	y.status.Done += uint32(more)
}

// computeAll reads the history and computes each bucket, two at a time. What
// needs no history is computed without.
func (y *cycle) computeAll(ctx context.Context) error {
	core := compute.Cycle{Now: y.now, Period: period}
	query := history.Query{To: y.now}
	longest := time.Duration(0)
	for _, w := range y.work {
		if w.Spec.History == 0 {
			result, memory := core.Compute(w, w.WithoutHistory(), y.memories[w.Bucket.FullName()])
			if err := y.take(ctx, result, memory); err != nil {
				return err
			}
			continue
		}
		longest = max(longest, w.Spec.History)
		query.Buckets = append(query.Buckets, history.Wanted{Bucket: *w.Bucket, Ignore: w.Spec.Ignore, LookBack: w.Spec.History, Least: w.Least()})
	}
	query.From = y.now.Add(-longest)
	if len(query.Buckets) > 0 {
		checked, err := y.crossCheck(ctx, query)
		if err != nil {
			return err
		}
		if err := y.readAndCompute(ctx, core, query, checked); err != nil {
			return err
		}
	}
	return y.record(ctx, 1)
}

func (y *cycle) readAndCompute(ctx context.Context, core compute.Cycle, query history.Query, checked doubts) error {
	byName := make(map[string]compute.Work, len(y.work))
	for _, w := range y.work {
		byName[w.Bucket.FullName()] = w
	}
	g, ctx := errgroup.WithContext(ctx)
	read := make(chan history.Bucket)
	g.Go(func() error {
		defer close(read)
		return y.source.Read(ctx, query, func(b history.Bucket) error {
			select {
			case read <- b:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	for range workers {
		g.Go(func() error {
			for b := range read {
				w, ok := byName[b.Name]
				if !ok {
					continue
				}
				result, memory := core.Compute(w, checked.doubt(b), y.memories[b.Name])
				if err := y.take(ctx, result, memory); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// take adds a result, and records those that there are from time to time.
func (y *cycle) take(ctx context.Context, r *grlv1.RunResult, next compute.Memory) error {
	data, steps := y.pack(r, next)
	y.metrics.results.WithLabelValues(outcomeWord(r.GetOutcome())).Inc()
	if r.GetRefused() != "" {
		y.metrics.refusals.WithLabelValues(r.GetRefused()).Inc()
	}
	y.add(r, &grlv1.BucketMemory{Bucket: r.GetBucket(), Data: data}, &grlv1.BucketMemory{Bucket: r.GetBucket(), Data: steps})
	return y.record(ctx, recordAt)
}

// add keeps a result until it is recorded, and what was learnt until the end.
func (y *cycle) add(r *grlv1.RunResult, learnt, steps *grlv1.BucketMemory) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.results = append(y.results, r)
	y.learnt = append(y.learnt, learnt)
	switch r.GetOutcome() {
	case grlv1.RunOutcome_RUN_OUTCOME_APPLIED, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED:
		y.changes = append(y.changes, sentence{r.GetBucket(), r.GetPolicy(), r.GetReason()})
		y.steps = append(y.steps, steps)
	}
}

// Bounds of what the controller keeps of one bucket, in bytes.
const (
	maxResult = 60 << 10
	maxMemory = 500 << 10
)

// pack returns what was learnt as it is kept, whole, and of the steps alone. A
// bucket of which something cannot be kept has failed, and changes nothing.
func (y *cycle) pack(r *grlv1.RunResult, next compute.Memory) (data, steps []byte) {
	before := y.memories[r.GetBucket()]
	next.PolicyText = y.content.texts[r.GetPolicy()]
	data, err := next.Bytes()
	if err == nil {
		steps, err = before.WithSteps(next).Bytes()
	}
	whole, cause := proto.Marshal(r)
	switch err = errors.Join(err, cause); {
	case err != nil:
	case len(whole) > maxResult || len(data) > maxMemory:
		err = fmt.Errorf("%d bytes of result and %d of memory, at most %d and %d: it has too many regions", len(whole), len(data), maxResult, maxMemory)
	default:
		return data, steps
	}
	r.Outcome, r.After, r.Numbers, r.DailyPeaks = grlv1.RunOutcome_RUN_OUTCOME_FAILED, nil, nil, nil
	r.Reason = strings.ToValidUTF8("the result cannot be kept: "+err.Error(), "?")
	before.ComputedAt, before.PolicyText = y.now, next.PolicyText
	if data, err = before.Bytes(); err != nil {
		data = nil // nothing was learnt
	}
	return data, data
}

// hashOf returns what tells a text from another one.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// record records the results that there are, if they are so many.
func (y *cycle) record(ctx context.Context, least int) error {
	y.mu.Lock()
	var results []*grlv1.RunResult
	if len(y.results) >= least {
		results, y.results = y.results, nil
	}
	y.mu.Unlock()
	for chunk := range slices.Chunk(results, recordAt) {
		if err := y.send(ctx, &grlv1.RecordResultsRequest{Results: chunk}); err != nil {
			return fmt.Errorf("record results: %w", err)
		}
		y.progress(len(chunk))
	}
	return nil
}

func (y *cycle) send(ctx context.Context, request *grlv1.RecordResultsRequest) error {
	request.Holder, request.Run = y.holder, y.run.GetId()
	return y.group.do(ctx, func(ctx context.Context, to conn) error {
		_, err := to.RecordResults(ctx, request)
		return err
	})
}

// learn keeps what was learnt of buckets at the controller.
func (y *cycle) learn(ctx context.Context, memories []*grlv1.BucketMemory) error {
	for len(memories) > 0 {
		n, size := 0, 0
		for n < len(memories) && (n == 0 || size+len(memories[n].GetData()) < memoryBytes) && n < recordAt {
			size += len(memories[n].GetData())
			n++
		}
		if err := y.send(ctx, &grlv1.RecordResultsRequest{Memories: memories[:n]}); err != nil {
			return fmt.Errorf("record what was learnt: %w", err)
		}
		memories = memories[n:]
	}
	return nil
}

// finish closes the run. What was learnt is kept only of a run that came to its
// end: another one computes the same again.
func (y *cycle) finish(ctx context.Context, cause error) error {
	if cause == nil && !y.run.GetDryRun() {
		cause = y.learn(ctx, y.learnt)
	}
	request := &grlv1.FinishRunRequest{Holder: y.holder, Run: y.run.GetId(), Commit: y.run.GetCommit(), Verified: y.run.GetVerified()}
	if cause != nil {
		request.Error = problem(cause)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTTL)
	defer cancel()
	err := y.group.do(ending, func(ctx context.Context, to conn) error {
		_, err := to.FinishRun(ctx, request)
		return err
	})
	y.noteEnd(ctx, cause)
	y.Configurator.mu.Lock()
	y.status.Run, y.status.Done, y.status.Buckets = 0, 0, 0
	y.Configurator.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("finish run %d: %w", y.run.GetId(), err)
	}
	return errors.Join(cause, err)
}

func (y *cycle) noteEnd(ctx context.Context, cause error) {
	took := time.Since(y.now)
	y.metrics.duration.Observe(took.Seconds())
	if cause != nil {
		y.metrics.cycles.WithLabelValues("failed").Inc()
		y.opts.Log.ErrorContext(ctx, "cycle failed; limits stay, another one will go on", "run", y.run.GetId(), "took_seconds", took.Seconds(), "err", cause)
		return
	}
	y.metrics.cycles.WithLabelValues("done").Inc()
	y.metrics.last.SetToCurrentTime()
	y.opts.Log.InfoContext(ctx, "cycle done", "run", y.run.GetId(), "took_seconds", took.Seconds(), "revision", y.run.GetRevision(), "commit", y.run.GetCommit())
}

// outcomeWord is an outcome as metrics and people name it.
func outcomeWord(o grlv1.RunOutcome) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "RUN_OUTCOME_"))
}
