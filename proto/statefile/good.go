package statefile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

const (
	// GoodAfter is how long a node holds a configuration before it is good:
	// what makes the process end sooner is not met again after the restart.
	GoodAfter = time.Minute
	// mostGood is how many good ones are kept, of different revisions.
	mostGood = 5
	// retryGood is how long after a failure the next write waits.
	retryGood = time.Minute
)

// Good keeps on disk the last five configurations that a node held for a
// minute, each in a file of its own. A node that restarts begins with the
// newest of them that it can take; one that it did not hold for a minute does
// not count. Create it with NewGood. Not safe for concurrent use.
type Good struct {
	dir  string
	role string
	node string

	held  limiter.Version
	since time.Time // when held came
	kept  bool      // held is on disk
	retry time.Time // no sooner is it tried to write; zero: at once
}

// NewGood returns the good configurations of a role in a directory, which Keep
// creates if it is missing; node is as in New.
func NewGood(dir, role, node string) *Good {
	return &Good{dir: filepath.Join(dir, role+".good"), role: role, node: node}
}

// Load offers what is on disk to take, the newest first, until take returns nil.
// Only Configuration and Zones of the state are set. The error has what was wrong
// with those before, and with all if none was taken; nil if there is none.
func (g *Good) Load(take func(State) error) error {
	names, err := g.entries()
	errs := []error{err}
	names = slices.DeleteFunc(names, func(name string) bool { return !goodName.MatchString(name) })
	for _, name := range names[:min(len(names), mostGood)] {
		s, err := g.file(name).Load()
		if err == nil && s.Configuration == nil {
			err = fmt.Errorf("load state: %s: no configuration", name)
		}
		if err == nil {
			err = take(s)
		}
		if err == nil {
			g.held, g.kept = s.Configuration.Version(), true
			break
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Keep asks held, at each T until ctx ends, for the configuration that the node
// holds, nil if it holds none, and writes it when it is good. It waits for the
// disk, and nobody for it: a failure is logged, and tried again a minute later.
func (g *Good) Keep(ctx context.Context, log *slog.Logger, held func() State) {
	tick := time.NewTicker(law.T)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, now := held(), time.Now()
		if !g.due(now, s.Configuration) {
			continue
		}
		if err := g.save(s); err != nil {
			log.WarnContext(ctx, "cannot keep good configuration on disk", "revision", s.Configuration.Revision, "err", err)
			g.retry = now.Add(retryGood)
			continue
		}
		g.kept = true
	}
}

// due reports whether c is good and is to be written.
func (g *Good) due(now time.Time, c *limiter.Configuration) bool {
	if c == nil {
		return false
	}
	if v := c.Version(); v != g.held {
		g.held, g.since, g.kept, g.retry = v, now, false, time.Time{}
	}
	return !g.kept && now.Sub(g.since) >= GoodAfter && !now.Before(g.retry)
}

// save writes the configuration of s, and removes the oldest ones and what else
// there is of its revision.
func (g *Good) save(s State) error {
	c := s.Configuration
	written := fmt.Sprintf("%016x-%016x", c.Epoch, c.Revision)
	if err := g.file(written).Save(State{Configuration: c, Zones: s.Zones}); err != nil {
		return err
	}
	entries, err := g.entries()
	errs := []error{err}
	left := 0
	for _, name := range entries {
		again := name != written && revisionOf(name) == revisionOf(written)
		switch {
		case goodName.MatchString(name) && !again && left < mostGood:
			left++
		case goodName.MatchString(name) || strings.HasSuffix(name, newSuffix): // the rest of a crash
			errs = append(errs, ignoreMissing(os.Remove(filepath.Join(g.dir, name))))
		}
	}
	return errors.Join(errs...)
}

func (g *Good) file(name string) *File {
	return &File{path: filepath.Join(g.dir, name), node: g.role + " " + g.node}
}

// goodName is the name of a file: epoch and revision.
var goodName = regexp.MustCompile(`^[0-9a-f]{16}-[0-9a-f]{16}$`)

func revisionOf(name string) string { return name[strings.IndexByte(name, '-')+1:] }

// entries returns the names of what is in the directory, the newest
// configuration first: epochs rise, and revisions within them.
func (g *Good) entries() ([]string, error) {
	entries, err := os.ReadDir(g.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list good configurations: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(b, a) })
	return names, nil
}
