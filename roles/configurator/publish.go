package configurator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
	"grl/roles/configurator/repository"
)

const (
	// rlcEmail is of the commits of the configurator.
	rlcEmail = "rlc@grl"
	// mostLines bounds the sentences in the message of a commit.
	mostLines = 200
)

// publish writes what was computed to the limits repository, makes it active,
// and looks whether it is.
func (y *cycle) publish(ctx context.Context) error {
	y.turn <- struct{}{}
	defer func() { <-y.turn }()
	if err := y.commit(ctx); refuses(err) {
		// What people pushed does not hold, or a cycle was cut off between its push
		// and here. That is no reason to leave all limits as they are: the files get
		// what they lack in the first cycle after they are in step again.
		y.noteSync(ctx, err)
	} else if err != nil {
		return fmt.Errorf("write to the limits repository: %w", err)
	}
	if err := y.learn(ctx, y.steps); err != nil {
		return err
	}
	answer, err := y.adopt(ctx, false)
	if err != nil {
		return fmt.Errorf("change limits: %w", err)
	}
	if !answer.GetOutcome().GetChanged() {
		return nil
	}
	y.run.Revision = answer.GetOutcome().GetRevision().GetNumber()
	if y.run.Verified, err = y.verify(ctx, answer); err != nil {
		return fmt.Errorf("verify r%d: %w", y.run.GetRevision(), err)
	}
	if y.repository != nil {
		y.noteSync(ctx, y.sync(ctx)) // the files are the base of the next ones
	}
	return nil
}

// refuses reports whether an error is that the controller refused the files of the
// repository.
func refuses(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeAborted:
		return err != nil
	default:
		return false
	}
}

func (y *cycle) adopt(ctx context.Context, dryRun bool) (*grlv1.AdoptRunResponse, error) {
	var answer *grlv1.AdoptRunResponse
	err := y.group.do(ctx, func(ctx context.Context, to conn) (err error) {
		answer, err = to.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: y.holder, Run: y.run.GetId(), DryRun: dryRun})
		return err
	})
	return answer, err
}

// commit writes the limits that will be taken into the repository, if there is
// one, as one commit, and pushes it. Limits that change many times a day are
// written once a day.
func (y *cycle) commit(ctx context.Context) error {
	if y.repository == nil {
		return nil
	}
	for range syncTries {
		if err := y.sync(ctx); err != nil {
			return err
		}
		plan, err := y.adopt(ctx, true)
		if err != nil {
			return err
		}
		due := slices.DeleteFunc(plan.GetTaken(), func(bucket string) bool { return !y.commitsToday(bucket) })
		if len(due) == 0 && !y.flushes() {
			return nil
		}
		err = y.commitOnce(ctx, plan, due)
		if !errors.Is(err, repository.ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("others pushed in between %d times", syncTries)
}

// commitsToday reports whether a bucket's limit is to be written: those of a
// policy that computes it more often than once a day only in the first cycle of
// the day.
func (y *cycle) commitsToday(bucket string) bool {
	spec := y.specs[bucket]
	return spec == nil || period(spec) >= 23*time.Hour || compute.NewDay(spec, y.memories[bucket], y.now)
}

// flushes reports whether what the files lack of earlier cycles is to be written
// now: in one that computes limits of a day.
func (y *cycle) flushes() bool {
	if len(y.drift) == 0 {
		return false
	}
	for bucket := range y.specs {
		if y.commitsToday(bucket) {
			return true
		}
	}
	return false
}

// commitOnce writes the services of buckets as they will be, and what the files
// lack of earlier cycles.
func (y *cycle) commitOnce(ctx context.Context, plan *grlv1.AdoptRunResponse, due []string) error {
	head, err := y.repository.Head(ctx)
	if err != nil {
		return err
	}
	files, err := y.repository.Files(ctx, head)
	if err != nil {
		return err
	}
	own, err := byService(files)
	if err != nil {
		return err
	}
	wanted, err := y.toWrite(ctx, plan, due)
	if err != nil {
		return err
	}
	var changed []limitsfile.Source
	for _, want := range wanted {
		edited, err := limitsfile.Rewrite(own[want.Name], want)
		if err != nil {
			return fmt.Errorf("%s: %w", want.Name, err)
		}
		changed = append(changed, edited...)
	}
	if len(changed) == 0 {
		return nil
	}
	commit, err := y.repository.Commit(ctx, head, changed, repository.Author{Name: "grl configurator", Email: rlcEmail}, y.message(due))
	if err != nil {
		return err
	}
	y.run.Commit = string(commit)
	return nil
}

// toWrite returns the services whose files are to say what will be, or, where the
// plan leaves them alone, what is.
func (y *cycle) toWrite(ctx context.Context, plan *grlv1.AdoptRunResponse, due []string) ([]limiter.Service, error) {
	planned, err := limitsfile.Load(sources(plan.GetFiles()))
	if err != nil {
		return nil, err
	}
	will := make(map[string]limiter.Service, len(planned))
	for _, s := range planned {
		will[s.Name] = s
	}
	names := make(map[string]bool)
	for _, bucket := range due {
		service, _, _ := strings.Cut(bucket, "/")
		names[service] = true
	}
	if y.flushes() {
		for _, service := range y.drift {
			names[service] = true
		}
	}
	var wanted []limiter.Service
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if s, ok := will[name]; ok {
			wanted = append(wanted, s)
			continue
		}
		now, err := y.present(ctx, name)
		if err != nil {
			return nil, err
		}
		if now != nil {
			wanted = append(wanted, *now)
		}
	}
	return wanted, nil
}

// message says which policies changed what, in which run, and why.
func (y *cycle) message(due []string) string {
	var policies, lines []string
	wanted := make(map[string]bool, len(due))
	for _, bucket := range due {
		wanted[bucket] = true
	}
	for _, r := range y.changes {
		if !wanted[r.bucket] {
			continue
		}
		if !slices.Contains(policies, r.policy) {
			policies = append(policies, r.policy)
		}
		lines = append(lines, r.bucket+": "+r.reason)
	}
	slices.Sort(policies)
	slices.Sort(lines)
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines], fmt.Sprintf("and %d more", more))
	}
	if len(due) == 0 {
		return fmt.Sprintf("rlc: limits of earlier cycles (run %d)\n", y.run.GetId())
	}
	limits := "limits"
	if len(due) == 1 {
		limits = "limit"
	}
	return fmt.Sprintf("rlc: %d %s by %s (run %d)\n\n%s\n", len(due), limits, strings.Join(policies, ", "), y.run.GetId(), strings.Join(lines, "\n"))
}

// verify looks whether the revision is active and says what the run meant. It
// returns "active", or what is otherwise.
func (y *cycle) verify(ctx context.Context, adopted *grlv1.AdoptRunResponse) (string, error) {
	var fleet *grlv1.GetFleetResponse
	err := y.group.do(ctx, func(ctx context.Context, to conn) (err error) {
		fleet, err = to.view.GetFleet(ctx, &grlv1.GetFleetRequest{})
		return err
	})
	if err != nil {
		return "", err
	}
	if at := fleet.GetRevision(); at < y.run.GetRevision() {
		return fmt.Sprintf("saved, and the controller is still at r%d", at), nil
	}
	meant, err := limitsfile.Load(sources(adopted.GetFiles()))
	if err != nil {
		return "", err
	}
	for _, want := range meant {
		now, err := y.present(ctx, want.Name)
		if err != nil {
			return "", err
		}
		if now == nil || !bytes.Equal(limitsfile.Normalize(*now), limitsfile.Normalize(want)) {
			return want.Name + " was changed meanwhile", nil
		}
	}
	return "active", nil
}

// discover returns what policies find for services without limits.
func (y *cycle) discover(ctx context.Context, s selection) ([]*grlv1.RunResult, error) {
	var specs []*policy.Spec
	for i := range y.content.specs {
		if spec := &y.content.specs[i]; spec.Discover != nil && s.discovers(spec) {
			specs = append(specs, spec)
		}
	}
	if len(specs) == 0 {
		return nil, nil
	}
	var traffic *grlv1.GetTrafficResponse
	err := y.group.do(ctx, func(ctx context.Context, to conn) (err error) {
		traffic, err = to.view.GetTraffic(ctx, &grlv1.GetTrafficRequest{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read who sends to services without limits: %w", err)
	}
	var found []*grlv1.RunResult
	named := make(map[string]bool)
	for _, spec := range specs {
		for _, r := range compute.Discover(y.now, spec, y.content.services, traffic.GetHours()) {
			if !named[r.GetBucket()] {
				named[r.GetBucket()] = true
				found = append(found, r)
			}
		}
	}
	return found, nil
}
