// Package repository keeps limits files in step with what others write: a git
// checkout, driven by the git command, or a plain directory. It never forces a
// push, and never touches what people have changed and not committed.
package repository

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"grl/limiter/limitsfile"
)

// ErrMoved says that others pushed in between: take in what they did, and write
// anew.
var ErrMoved = errors.New("the limits repository has moved on")

// Version names a state of the repository: a commit, or the hash of all files.
type Version string

// Short returns the version for people.
func (v Version) Short() string { return string(v[:min(len(v), 12)]) }

// Author is who a commit is by.
type Author struct{ Name, Email string }

// Options says what a repository is.
type Options struct {
	// Path is the top of a checkout, a folder in one, which then is all that
	// counts, or a plain directory.
	Path string
	// Branch is the one that is read and pushed; empty: the one that is checked
	// out.
	Branch string
	Log    *slog.Logger
	// Git is the command; empty: "git".
	Git string
}

// Repository is open limits files. Create it with Open. Methods must not be
// called concurrently, and no other process opens the same one.
type Repository struct {
	opts Options
	git  *git // nil: a plain directory
	lock *os.File
}

// Open opens a repository, and finishes or undoes what a process that was killed
// has left.
func Open(ctx context.Context, o Options) (*Repository, error) {
	if o.Git == "" {
		o.Git = "git"
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", o.Path)
	}
	o.Path = path
	r := &Repository{opts: o}
	r.git, err = openGit(ctx, o)
	if err != nil {
		return nil, err
	}
	state := path
	if r.git != nil {
		state = r.git.dir
	}
	if r.lock, err = lock(filepath.Join(state, lockName)); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	if err := r.recover(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// lockName is the file that who has the repository open holds.
const lockName = ".grl.lock"

func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another process has it open"), f.Close())
	}
	return f, nil
}

// Close gives the repository free.
func (r *Repository) Close() error { return r.lock.Close() }

func (r *Repository) recover(ctx context.Context) error {
	if r.git != nil {
		return r.git.recover(ctx)
	}
	return recoverDirectory(r.opts.Path)
}

// Head returns the version that is here, without asking others.
func (r *Repository) Head(ctx context.Context) (Version, error) {
	if r.git != nil {
		return r.git.head(ctx)
	}
	return directoryVersion(r.opts.Path)
}

// Fetch takes in what others pushed, and returns the version that holds then. A
// commit of this process that was never pushed is left: who made it makes it
// anew.
func (r *Repository) Fetch(ctx context.Context) (Version, error) {
	if r.git != nil {
		return r.git.fetch(ctx)
	}
	return directoryVersion(r.opts.Path)
}

// Files returns the limits files of a version that Head, Fetch or Commit
// returned.
func (r *Repository) Files(ctx context.Context, v Version) ([]limitsfile.Source, error) {
	if r.git != nil {
		return r.git.files(ctx, v)
	}
	return limitsfile.ReadDir(r.opts.Path)
}

// Describe returns the author of a version and the first line of its message.
func (r *Repository) Describe(ctx context.Context, v Version) (author, subject string, err error) {
	if r.git != nil {
		return r.git.describe(ctx, v)
	}
	return "limits directory", "files changed", nil
}

// Commit writes files, and removes those without data, on top of base, and
// pushes. ErrMoved if the repository is not at base any more.
func (r *Repository) Commit(ctx context.Context, base Version, changes []limitsfile.Source, by Author, message string) (Version, error) {
	if r.git != nil {
		return r.git.commit(ctx, base, changes, by, message)
	}
	now, err := directoryVersion(r.opts.Path)
	if err != nil {
		return "", err
	}
	if now != base {
		return "", ErrMoved
	}
	if err := writeDirectory(r.opts.Path, changes); err != nil {
		return "", err
	}
	return directoryVersion(r.opts.Path)
}
