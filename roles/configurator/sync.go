package configurator

import (
	"cmp"
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
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/repository"
)

const (
	// pollEvery is how often the limits repository is looked at without a
	// webhook.
	pollEvery = 30 * time.Second
	// syncTries bounds how often a commit is made anew because others pushed in
	// between.
	syncTries = 10
	// maxProblem bounds what is told of a failure, in bytes.
	maxProblem = 2000
	// machine is the source of revisions that the configurator made.
	machine = "rlc"
)

// keepInStep brings repository and controller into step, whenever one of them
// changed, until ctx ends.
func (c *Configurator) keepInStep(ctx context.Context) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		c.turn <- struct{}{}
		err := c.sync(ctx)
		<-c.turn
		if ctx.Err() != nil {
			return
		}
		c.noteSync(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-c.resync:
		case <-poll.C:
		}
	}
}

// noteSync shows how the last sync went.
func (c *Configurator) noteSync(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.status.GetRepositoryProblem()
	c.status.RepositoryProblem, c.status.Conflicts = "", nil
	if err == nil {
		c.metrics.syncs.WithLabelValues("done").Inc()
		c.status.SyncedAtMs = time.Now().UnixMilli()
		if before != "" {
			c.opts.Log.InfoContext(ctx, "the limits repository is in step again")
		}
		return
	}
	c.metrics.syncs.WithLabelValues("failed").Inc()
	c.status.RepositoryProblem = problem(err)
	c.status.Conflicts = refusal(err).GetConflicts()
	if c.status.RepositoryProblem != before {
		c.opts.Log.ErrorContext(ctx, "the limits repository is not in step; what was active stays", "err", err)
	}
}

// refusal returns why the controller refused a change; empty if it was not that.
func refusal(err error) *grlv1.Refusal {
	var refused *connect.Error
	if !errors.As(err, &refused) {
		return nil
	}
	for _, detail := range refused.Details() {
		if value, err := detail.Value(); err == nil {
			if r, ok := value.(*grlv1.Refusal); ok {
				return r
			}
		}
	}
	return nil
}

// problem returns an error for people, on one line.
func problem(err error) string {
	text := err.Error()
	var refused *connect.Error
	if errors.As(err, &refused) {
		text = strings.ReplaceAll(text, refused.Code().String()+": ", "")
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text = strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxProblem)], "")
}

// sync takes in what was pushed, applies it, and writes what people changed at
// the controller into the repository. The caller has the turn.
func (c *Configurator) sync(ctx context.Context) error {
	for range syncTries {
		head, err := c.repository.Fetch(ctx)
		if err != nil {
			return err
		}
		if c.synced(head) {
			return nil
		}
		files, err := c.repository.Files(ctx, head)
		if err != nil {
			return err
		}
		outcome, err := c.applyFiles(ctx, head, files)
		if err != nil {
			return fmt.Errorf("apply %s: %w", head.Short(), err)
		}
		wrote, err := c.mirror(ctx, head, files, outcome.GetKept())
		if err != nil && !errors.Is(err, repository.ErrMoved) {
			return err
		}
		if err == nil && !wrote {
			c.mu.Lock()
			c.status.Commit, c.inStepAt = string(head), outcome.GetRevision().GetNumber()
			c.mu.Unlock()
			return nil
		}
	}
	return fmt.Errorf("others pushed to the limits repository in between %d times", syncTries)
}

// synced reports whether a version and the present revision are in step already.
func (c *Configurator) synced(head repository.Version) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inStepAt != 0 && c.status.GetCommit() == string(head) && c.inStepAt == c.told.GetRevision()
}

// applyFiles makes the files of a version the configuration.
func (c *Configurator) applyFiles(ctx context.Context, head repository.Version, files []limitsfile.Source) (*grlv1.Outcome, error) {
	author, subject, err := c.repository.Describe(ctx, head)
	if err != nil {
		return nil, err
	}
	request := &grlv1.ApplyRepositoryRequest{Holder: c.holder, Commit: string(head), Author: author, Reason: subject}
	for _, f := range files {
		request.Files = append(request.Files, &grlv1.LimitsFile{Name: f.Name, Data: f.Data})
	}
	var answer *grlv1.ApplyRepositoryResponse
	err = c.group.do(ctx, func(ctx context.Context, to conn) (err error) {
		answer, err = to.ApplyRepository(ctx, request)
		return err
	})
	return answer.GetOutcome(), err
}

// mirror writes later edits of people into the repository, a commit for each
// revision with its author. It reports whether it wrote something. What the
// configurator changed is written with its own run.
func (c *Configurator) mirror(ctx context.Context, head repository.Version, files []limitsfile.Source, kept []*grlv1.Conflict) (bool, error) {
	byRevision := make(map[uint64][]*grlv1.Conflict)
	c.drift = nil
	for _, k := range kept {
		if service, _, _ := strings.Cut(k.GetBucket(), "/"); k.GetRevision().GetSource() == machine && !slices.Contains(c.drift, service) {
			c.drift = append(c.drift, service)
		}
		if k.GetRevision().GetSource() != machine {
			byRevision[k.GetRevision().GetNumber()] = append(byRevision[k.GetRevision().GetNumber()], k)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(byRevision)) {
		edits := byRevision[number]
		changed, err := c.editFiles(ctx, files, edits)
		if err != nil {
			return false, fmt.Errorf("write r%d into the limits repository: %w", number, err)
		}
		r := edits[0].GetRevision()
		author := repository.Author{Name: r.GetAuthor(), Email: r.GetAuthor() + "@grl"}
		if head, err = c.repository.Commit(ctx, head, changed, author, mirrorMessage(r, edits)); err != nil {
			return false, err
		}
		files = replaceFiles(files, changed)
	}
	return len(byRevision) > 0, nil
}

func mirrorMessage(r *grlv1.Revision, edits []*grlv1.Conflict) string {
	var names []string
	for _, e := range edits {
		names = append(names, e.GetBucket())
	}
	what := strings.Join(names[:min(3, len(names))], ", ")
	if len(names) > 3 {
		what += fmt.Sprintf(" and %d more", len(names)-3)
	}
	return fmt.Sprintf("limits: %s\n\n%s\n\nrevision: r%d\n", what, cmp.Or(r.GetReason(), "no reason given"), r.GetNumber())
}

// editFiles returns the files that differ once edits of the present
// configuration are in them.
func (c *Configurator) editFiles(ctx context.Context, files []limitsfile.Source, edits []*grlv1.Conflict) ([]limitsfile.Source, error) {
	items := make(map[string]map[string]bool) // service → item
	for _, e := range edits {
		service, _, _ := strings.Cut(e.GetBucket(), "/")
		if items[service] == nil {
			items[service] = make(map[string]bool)
		}
		items[service][e.GetBucket()] = true
	}
	own, err := byService(files)
	if err != nil {
		return nil, err
	}
	var all []limitsfile.Source
	for _, service := range slices.Sorted(maps.Keys(items)) {
		now, err := c.present(ctx, service)
		if err != nil {
			return nil, err
		}
		changed, err := rewriteItems(own[service], service, now, items[service])
		if err != nil {
			return nil, err
		}
		all = append(all, changed...)
	}
	return all, nil
}

// present returns a service as it is configured; nil: it has no limits.
func (c *Configurator) present(ctx context.Context, service string) (*limiter.Service, error) {
	var answer *grlv1.GetConfigurationResponse
	err := c.group.do(ctx, func(ctx context.Context, to conn) (err error) {
		answer, err = to.config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{Service: service})
		return err
	})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	services, err := limitsfile.Load(sources(answer.GetFiles()))
	if err != nil || len(services) == 0 {
		return nil, err
	}
	return &services[0], nil
}

func sources(files []*grlv1.LimitsFile) []limitsfile.Source {
	list := make([]limitsfile.Source, len(files))
	for i, f := range files {
		list[i] = limitsfile.Source{Name: f.GetName(), Data: f.GetData()}
	}
	return list
}

// rewriteItems returns the files of a service that differ once they say of some
// items what is configured now.
func rewriteItems(own []limitsfile.Source, service string, now *limiter.Service, items map[string]bool) ([]limitsfile.Source, error) {
	if now == nil {
		removed := slices.Clone(own)
		for i := range removed {
			removed[i].Data = nil
		}
		return removed, nil
	}
	want := limiter.Service{Name: service}
	if loaded, err := limitsfile.Load(own); err != nil {
		return nil, err
	} else if len(loaded) > 0 {
		want = loaded[0]
	}
	buckets := slices.DeleteFunc(slices.Clone(want.Buckets), func(b limiter.Bucket) bool { return items[b.FullName()] })
	for _, b := range now.Buckets {
		if items[b.FullName()] {
			buckets = append(buckets, b)
		}
	}
	if items[service] {
		want.Owner, want.Enforce, want.Routes, want.Exempt = now.Owner, now.Enforce, now.Routes, now.Exempt
	}
	want.Buckets = buckets
	return limitsfile.Rewrite(own, want)
}

// byService sorts files by the service that they are of.
func byService(files []limitsfile.Source) (map[string][]limitsfile.Source, error) {
	of := make(map[string][]limitsfile.Source)
	for _, f := range files {
		parsed, err := limitsfile.Parse(f.Name, f.Data)
		if err != nil {
			return nil, err
		}
		of[parsed.Service.Name] = append(of[parsed.Service.Name], f)
	}
	return of, nil
}

// replaceFiles returns files with some of them changed, new, or, without data,
// gone.
func replaceFiles(files, changed []limitsfile.Source) []limitsfile.Source {
	next := slices.Clone(files)
	for _, f := range changed {
		next = slices.DeleteFunc(next, func(old limitsfile.Source) bool { return old.Name == f.Name })
		if f.Data != nil {
			next = append(next, f)
		}
	}
	return next
}
