// Package repository keeps limits files in step with what others write: a git
// checkout, driven by the git command, or a plain directory. It never takes away
// what others pushed, and never touches what people have changed and not
// committed.
package repository

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"grl/limiter/limitsfile"
)

// ErrMoved says that others wrote in between: take in what they did, and write
// anew.
var ErrMoved = errors.New("the limits repository has moved on")

// Version names a state of the repository: a commit, or the hash of all files.
// Empty: there is no commit yet.
type Version string

// Short returns the version for people.
func (v Version) Short() string { return string(v[:min(len(v), 12)]) }

// Author is who a commit is by. What git cannot have in a name is left out.
type Author struct{ Name, Email string }

// Options says what a repository is.
type Options struct {
	// Path is the top of a checkout, a folder in one, which then is all that
	// counts, or a plain directory.
	Path string
	// Branch is the one that is read and pushed; empty: the one that is checked
	// out. It need not exist yet.
	Branch string
	Log    *slog.Logger
	// Git is the command, of version 2.31 or later; empty: "git".
	Git string
}

// Repository is open limits files. Create it with Open. Methods must not be
// called concurrently, and no other process opens the same one. Names of files
// are relative to Options.Path, with slashes.
type Repository struct {
	opts Options
	git  *git // nil: a plain directory
	lock *os.File
}

// Open opens a repository, and finishes or undoes what a process that was killed
// has left. Where that cannot be, Fetch and Commit return why until it can.
func Open(ctx context.Context, o Options) (*Repository, error) {
	if o.Git == "" {
		o.Git = "git"
	}
	dir, err := filepath.Abs(o.Path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", o.Path)
	}
	o.Path = dir
	r := &Repository{opts: o}
	if r.git, err = openGit(ctx, o); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, lockName)
	if r.git != nil {
		name = r.git.state("lock")
	}
	if r.lock, err = lock(name); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	if r.git != nil {
		err = r.git.settle(ctx)
	} else {
		err = settleDirectory(dir)
	}
	if err != nil { // as where people edited meanwhile; each Fetch tries again, and says so
		o.Log.ErrorContext(ctx, "the limits repository is not as it was left", "err", err)
	}
	return r, nil
}

// lock takes the lock that keeps a second process out. It is a flock: the kernel
// lets go of it when the process ends, by kill -9 too.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another process has it open")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close gives the repository free.
func (r *Repository) Close() error { return r.lock.Close() }

// Head returns the version that is here, without asking others.
func (r *Repository) Head(ctx context.Context) (Version, error) {
	if r.git != nil {
		return r.git.head(ctx)
	}
	_, v, err := readDirectory(r.opts.Path)
	return v, err
}

// Fetch takes in what others pushed, and returns the version that holds then. A
// commit of a configurator that was never pushed is dropped, for the remote wins:
// who made it computes anew on top of what is there. An error, and nothing is
// taken in, if that would overwrite what people have not committed or not pushed,
// or if the remote lost commits that were taken in before: that is for people.
func (r *Repository) Fetch(ctx context.Context) (Version, error) {
	if r.git != nil {
		return r.git.fetch(ctx)
	}
	return r.Head(ctx)
}

// Files returns the limits files of a version that Head, Fetch or Commit
// returned, sorted by name: those that limitsfile.ReadDir would read, within its
// bounds. In a checkout links are not followed: one that is named like a limits
// file is an error, and so is a name that is not UTF-8. The error is a
// limitsfile.Errors then, of 20 files at most and how many more there are. Of a
// directory only what it has now can be read, else ErrMoved.
func (r *Repository) Files(ctx context.Context, v Version) ([]limitsfile.Source, error) {
	if r.git != nil {
		return r.git.files(ctx, v)
	}
	files, now, err := readDirectory(r.opts.Path)
	if err == nil && now != v {
		err = ErrMoved
	}
	if err == nil {
		err = checkText(files)
	}
	if err != nil {
		return nil, err
	}
	return files, nil
}

// Describe returns the author of a version and the first line of its message.
func (r *Repository) Describe(ctx context.Context, v Version) (author, subject string, err error) {
	if r.git != nil {
		return r.git.describe(ctx, v)
	}
	return "limits directory", "files changed", nil
}

// Commit writes files, and removes those without data, on top of base, and
// pushes. ErrMoved, and nothing is written, if the repository is not at base any
// more. It returns base if the files say that already. All files are written or
// none, whenever the process is killed.
func (r *Repository) Commit(ctx context.Context, base Version, changes []limitsfile.Source, by Author, message string) (Version, error) {
	if err := checkNames(changes); err != nil {
		return "", err
	}
	if r.git != nil {
		return r.git.commit(ctx, base, changes, by, message)
	}
	_, now, err := readDirectory(r.opts.Path)
	if err != nil {
		return "", err
	}
	if now != base {
		return "", ErrMoved
	}
	if err := writeDirectory(r.opts.Path, changes); err != nil {
		return "", err
	}
	return r.Head(ctx)
}

// checkNames returns which changes are none of a limits file that Files would
// return, or of one twice.
func checkNames(changes []limitsfile.Source) error {
	var errs []error
	var sizes []limitsfile.Size
	named := make(map[string]bool, len(changes))
	for _, c := range changes {
		switch {
		case !filepath.IsLocal(c.Name) || path.Clean(c.Name) != c.Name || strings.Contains(c.Name, "\x00") || !utf8.ValidString(c.Name) || !limitsfile.IsLimits(c.Name):
			errs = append(errs, fmt.Errorf("%q is no name of a limits file in the repository, as shop.yaml and team/shop.yaml are", c.Name))
		case named[c.Name]:
			errs = append(errs, fmt.Errorf("%q is to be written twice", c.Name))
		}
		named[c.Name] = true
		sizes = append(sizes, limitsfile.Size{Name: c.Name, Bytes: int64(len(c.Data))})
	}
	return errors.Join(append(errs, limitsfile.CheckSizes(sizes))...)
}
