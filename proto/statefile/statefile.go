// Package statefile keeps on disk what a node was told: its configuration and
// the last directive of each decider, in a File, and the configurations that
// held for a while, in Good. A node that restarts while nobody answers
// goes on from there instead of forgetting the limits. Losing the file costs
// only that, so nothing that is wrong with it stops a node.
package statefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// newSuffix ends the name of a file that is being written.
const newSuffix = ".new"

// maxBytes is the most that a file may have to be read.
const maxBytes = 1 << 28

// State is what a node keeps. The zero value is nothing.
type State struct {
	// Configuration is kept whatever its age, its caps with the wall time of
	// their ends; nil: none. The node must not change it afterwards.
	Configuration *limiter.Configuration
	// Zones says how many aggregators each zone has, as came with it.
	Zones    []*grlv1.ZoneSize
	Deciders []Decider
}

// Decider is what one decider decided, up to its last directive.
type Decider struct {
	Name  string
	Stamp law.Stamp
	Heard time.Time // wall time when the last directive came; kept to the millisecond
	Rows  []Row
}

// Row is what was decided of one cell.
type Row struct {
	Cell    limiter.CellID
	Verdict law.Verdict
	Share   float64 // the node's share of the offered rate, in [0, 1]
}

// Age returns how long ago the last directive came, by wall time; 0 if the
// clock has gone back since.
func (d *Decider) Age(now time.Time) time.Duration {
	return max(0, now.Round(0).Sub(d.Heard.Round(0))) // Round strips the monotonic reading
}

// File is where a node keeps its state. Create it with New. Not safe for
// concurrent use.
type File struct {
	path string
	node string

	configuration *limiter.Configuration // whose bytes are encoded
	encoded       []byte
	encodedAt     time.Time
}

// New returns the file of a role in a directory, which Save creates if it is
// missing. Node says who reads it: the state of another one, say of another
// zone, is not taken. Several roles may share a directory, two processes of one
// role should not.
func New(dir, role, node string) *File {
	return &File{path: filepath.Join(dir, role+".state"), node: role + " " + node}
}

// Save replaces the file with s, or leaves it as it was and returns an error.
// It waits for the disk.
func (f *File) Save(s State) error {
	data, err := f.encode(s)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := f.replace(data); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

// replace writes a file beside the old one and then renames it, so that a crash
// leaves one or the other.
func (f *File) replace(data []byte) error {
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// One name, so that crashes do not leave a heap of them.
	next := f.path + newSuffix
	if err := write(next, data); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(next)))
	}
	if err := os.Rename(next, f.path); err != nil {
		return err
	}
	return syncDir(dir)
}

func write(path string, data []byte) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// syncDir makes a rename in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Load returns what was saved last, nothing if nothing was. It returns an error
// and nothing if the file cannot be read, is damaged, is of another node or was
// written in a format that this version does not know.
func (f *File) Load() (State, error) {
	data, err := read(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("load state: %w", err)
	}
	s, err := f.decode(data)
	if err != nil {
		return State{}, fmt.Errorf("load state: %s: %w", f.path, err)
	}
	return s, nil
}

// read returns what a file has, up to a byte more than a state may have. It
// opens nothing else: a pipe would have the node wait for a writer.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxBytes+1))
}

// Keep saves what next returns, at each T and when ctx ends, until then; next
// returns false if nothing changed. It waits for the disk, and nobody for it: a
// failure is logged, once until it is another one, and tried again.
func (f *File) Keep(ctx context.Context, log *slog.Logger, next func(now time.Time) (State, bool)) {
	tick := time.NewTicker(law.T)
	defer tick.Stop()
	failure, changed := "", false
	var s State
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		if newer, ok := next(time.Now()); ok {
			s, changed = newer, true
		}
		if !changed {
			continue
		}
		err := f.Save(s)
		switch {
		case err != nil && err.Error() != failure:
			log.WarnContext(ctx, "cannot keep state on disk", "err", err)
			failure = err.Error()
		case err == nil && failure != "":
			log.InfoContext(ctx, "keeps state on disk again", "path", f.path)
			failure = ""
		}
		if changed = err != nil; !changed {
			s = State{}
		}
	}
}
