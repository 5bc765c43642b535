package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"grl/limiter/limitsfile"
)

// Files of ours in a plain directory. limitsfile.ReadDir reads nothing hidden.
const (
	lockName    = ".grl-lock"
	journalName = ".grl-journal"
	// partMark begins the name of a file that is written, and not in its place
	// yet.
	partMark = ".grl-part-"
)

// journal is what a commit does to a plain directory, once all parts are
// written. It is done whole, by the next process if need be.
type journal struct {
	Put    []put    `json:"put,omitempty"`
	Remove []string `json:"remove,omitempty"` // paths
}

// put is a rename of a part, both paths within the directory.
type put struct {
	Part string `json:"part"`
	Name string `json:"name"`
}

// readDirectory returns the limits files below a directory, and the hash of them
// all.
func readDirectory(dir string) ([]limitsfile.Source, Version, error) {
	if _, err := os.Lstat(filepath.Join(dir, journalName)); err == nil { // of a commit that failed in the middle
		if err := settleDirectory(dir); err != nil {
			return nil, "", err
		}
	}
	files, err := limitsfile.ReadDir(dir)
	if err != nil {
		return nil, "", firstErrors(err)
	}
	h := sha256.New()
	for i := range files {
		f := &files[i]
		if f.Name, err = filepath.Rel(dir, f.Name); err != nil {
			return nil, "", err
		}
		fmt.Fprintf(h, "%d %s %d ", len(f.Name), f.Name, len(f.Data))
		h.Write(f.Data)
	}
	return files, Version(hex.EncodeToString(h.Sum(nil))), nil
}

// writeDirectory writes and removes files: each is old or new to who reads it,
// and after a crash all of them are, since the journal is done to its end.
func writeDirectory(dir string, changes []limitsfile.Source) error {
	j, err := prepare(dir, changes)
	if err != nil {
		for _, p := range j.Put {
			err = errors.Join(err, ignoreMissing(os.Remove(filepath.Join(dir, p.Part))))
		}
		return err
	}
	return j.apply(dir)
}

// prepare writes the parts and the journal of changes. With an error, it returns
// what was written.
func prepare(dir string, changes []limitsfile.Source) (j journal, err error) {
	for i, f := range changes {
		if info, err := os.Stat(filepath.Join(dir, f.Name)); err == nil && !info.Mode().IsRegular() {
			return j, fmt.Errorf("%s is no regular file", filepath.Join(dir, f.Name))
		}
		if f.Data == nil {
			j.Remove = append(j.Remove, f.Name)
			continue
		}
		p, err := writePart(dir, f, i)
		if err != nil {
			return j, err
		}
		j.Put = append(j.Put, p)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return j, err
	}
	return j, writeFile(filepath.Join(dir, journalName), text, 0o600)
}

// writePart writes a file beside the place where it will be.
func writePart(dir string, f limitsfile.Source, number int) (put, error) {
	name := f.Name
	// A file in the directory that a link leads to is replaced, not the link:
	// another link to it would keep the old one alive beside the new.
	if real, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
		if rel, err := filepath.Rel(dir, real); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
		mode = info.Mode().Perm()
	}
	p := put{Part: filepath.Join(filepath.Dir(name), partMark+strconv.Itoa(number)), Name: name}
	part := filepath.Join(dir, p.Part)
	if err := os.MkdirAll(filepath.Dir(part), 0o755); err != nil {
		return put{}, err
	}
	if err := write(part, f.Data, mode); err != nil {
		return put{}, errors.Join(err, ignoreMissing(os.Remove(part)))
	}
	return p, nil
}

// apply does what is left of a journal, and removes it.
func (j journal) apply(dir string) error {
	changed := make(map[string]bool) // directories, within dir
	for _, p := range j.Put {
		// It is missing if it was renamed before a crash.
		if err := ignoreMissing(os.Rename(filepath.Join(dir, p.Part), filepath.Join(dir, p.Name))); err != nil {
			return err
		}
		for d := filepath.Dir(p.Name); d != "."; d = filepath.Dir(d) { // it may be new too
			changed[d] = true
		}
	}
	for _, name := range j.Remove {
		if err := ignoreMissing(os.Remove(filepath.Join(dir, name))); err != nil {
			return err
		}
		changed[filepath.Dir(name)] = true
	}
	changed["."] = true
	for d := range changed {
		if err := ignoreMissing(syncDir(filepath.Join(dir, d))); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(dir, journalName))
}

// settleDirectory finishes a commit that a killed process was at, and removes
// what one left that had not written all parts.
func settleDirectory(dir string) error {
	name := filepath.Join(dir, journalName)
	text, err := os.ReadFile(name)
	if err == nil {
		var j journal
		if err := json.Unmarshal(text, &j); err != nil || !j.local() {
			return fmt.Errorf("%s: not what a commit leaves (remove it to go on with the files as they are)", name)
		}
		err = j.apply(dir)
	}
	if ignoreMissing(err) != nil {
		return fmt.Errorf("finish what was cut off: %w", err)
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir // not ours to read, so no part of ours is in it
		case err == nil && d.Type().IsRegular() && strings.HasPrefix(d.Name(), partMark):
			return os.Remove(path)
		}
		return ignoreMissing(err)
	})
}

// local reports whether all of a journal is within its directory.
func (j journal) local() bool {
	names := slices.Clone(j.Remove)
	for _, p := range j.Put {
		names = append(names, p.Part, p.Name)
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !filepath.IsLocal(name) })
}

// writeFile replaces a file as a whole, and waits for the disk.
func writeFile(name string, data []byte, mode fs.FileMode) error {
	next := filepath.Join(filepath.Dir(name), partMark+filepath.Base(name))
	if err := write(next, data, mode); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(next)))
	}
	if err := os.Rename(next, name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func write(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	return errors.Join(err, f.Close())
}

// syncDir makes renames in a directory last.
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
