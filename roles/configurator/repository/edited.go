package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkFree returns an error if the move would meet what people are at.
func (g *git) checkFree(ctx context.Context, m marker) error {
	if shows, err := g.checkedOut(ctx); err != nil || !shows {
		return err
	}
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if _, err := os.Lstat(filepath.Join(g.dir, name)); err == nil {
			return fmt.Errorf("a merge, cherry-pick or revert is under way in %s: finish or abort it", g.top)
		}
	}
	if _, err := os.Lstat(filepath.Join(g.dir, "index.lock")); err == nil {
		return fmt.Errorf("another git is at work in %s, or was killed there: %s is in the way", g.top, filepath.Join(g.dir, "index.lock"))
	}
	changed, err := g.changed(ctx, m)
	if err != nil {
		return err
	}
	doubtful, err := g.doubtful(ctx, changed)
	if err != nil || !doubtful {
		return err
	}
	return g.checkEdited(ctx, m, changed)
}

// doubtful reports quickly whether people may have changed what a move changes.
func (g *git) doubtful(ctx context.Context, changes []change) (bool, error) {
	out, err := g.run(ctx, "status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return false, err
	}
	dirty := make(map[string]bool)
	for _, record := range records(out) {
		dirty[record[min(len("XY "), len(record)):]] = true
	}
	for _, c := range changes {
		if dirty[c.path] || c.adds() && !g.missing(c.path) {
			return true, nil
		}
	}
	return false, nil
}

// missing reports whether the work tree has nothing at a path, and nothing but
// directories above.
func (g *git) missing(path string) bool {
	for above := filepath.Dir(path); above != "."; above = filepath.Dir(above) {
		info, err := os.Lstat(filepath.Join(g.top, above))
		if err == nil && !info.IsDir() {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(g.top, path))
	return errors.Is(err, fs.ErrNotExist)
}

// checkEdited returns an error that names the files which people changed, of those
// that a move changes. Those that are as before the move or after it, or were cut
// off when git wrote them, are not of people.
func (g *git) checkEdited(ctx context.Context, m marker, changes []change) error {
	staged, err := g.staged(ctx, changes)
	if err != nil {
		return err
	}
	before, err := g.differs(ctx, g.tree(m.From))
	if err != nil {
		return err
	}
	after, err := g.differs(ctx, g.tree(m.To))
	if err != nil {
		return err
	}
	moved := make(map[string]bool, len(changes))
	for _, c := range changes {
		moved[c.path] = true
	}
	var edited []string
	for _, c := range changes {
		if c.old.mode == modeModule || c.new.mode == modeModule {
			continue // git leaves what is in it
		}
		ours := !c.adds() && !before[c.path] || !c.deletes() && !after[c.path]
		switch inTheWay, err := g.inTheWay(c.path, moved); {
		case err != nil:
			return err
		case inTheWay != "":
			edited = append(edited, inTheWay)
		case staged[c.path] || !ours && !g.cutOff(ctx, c):
			edited = append(edited, c.path)
		}
	}
	if len(edited) == 0 {
		return nil
	}
	slices.Sort(edited)
	for i, path := range edited {
		edited[i] = shown(path)
	}
	return fmt.Errorf("changed in %s and not committed: %s; commit or undo that", g.top, list(slices.Compact(edited)))
}

// staged returns which files people have added to the index otherwise than either
// commit has them.
func (g *git) staged(ctx context.Context, changes []change) (map[string]bool, error) {
	out, err := g.run(ctx, "ls-files", "--stage", "-z", "--full-name")
	if err != nil {
		return nil, err
	}
	entries := make(map[string]blob)
	for _, record := range records(out) {
		meta, path, _ := strings.Cut(record, "\t")
		f := strings.Fields(meta) // mode, id, stage
		if len(f) != 3 {
			return nil, fmt.Errorf("git ls-files says %q", record)
		}
		entries[path] = blob{f[1], f[0]}
		if f[2] != "0" {
			entries[path] = blob{} // a conflict: like neither
		}
	}
	staged := make(map[string]bool)
	for _, c := range changes {
		e, ok := entries[c.path]
		if ok && e != c.old && e != c.new || !ok && !c.adds() && !c.deletes() {
			staged[c.path] = true
		}
	}
	return staged, nil
}

// differs returns which files of a tree the work tree has otherwise or not at all.
func (g *git) differs(ctx context.Context, tree string) (map[string]bool, error) {
	_, env, done, err := g.scratch()
	if err != nil {
		return nil, err
	}
	defer done()
	own := call{env: env}
	if _, err := g.runWith(ctx, own, "read-tree", tree); err != nil {
		return nil, err
	}
	_, _ = g.runWith(ctx, own, "update-index", "-q", "--refresh") // fails where files differ
	out, err := g.runWith(ctx, own, "diff-files", "-z", "--name-only", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	differ := make(map[string]bool)
	for _, path := range records(out) {
		differ[path] = true
	}
	return differ, nil
}

// inTheWay returns what no commit of a move has, and lies where it has a file: a
// file above, or one in a directory of that name. Empty: nothing is.
func (g *git) inTheWay(path string, moved map[string]bool) (string, error) {
	for above := filepath.Dir(path); above != "."; above = filepath.Dir(above) {
		info, err := os.Lstat(filepath.Join(g.top, above))
		if err == nil && !info.IsDir() && !moved[above] {
			return above, nil
		}
	}
	info, err := os.Lstat(filepath.Join(g.top, path))
	if err != nil || !info.IsDir() {
		return "", nil
	}
	found := ""
	err = filepath.WalkDir(filepath.Join(g.top, path), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(g.top, name)
		if err == nil && !moved[rel] {
			found, err = rel, fs.SkipAll
		}
		return err
	})
	return found, err
}

// cutOff reports whether a file is missing, or is the beginning of what git was
// writing.
func (g *git) cutOff(ctx context.Context, c change) bool {
	name := filepath.Join(g.top, c.path)
	info, err := os.Lstat(name)
	if err != nil || info.IsDir() {
		return true
	}
	if !info.Mode().IsRegular() || c.deletes() {
		return false
	}
	whole, err := g.run(ctx, "cat-file", "blob", c.new.id)
	if err != nil || info.Size() >= int64(len(whole)) {
		return false
	}
	data, err := os.ReadFile(name)
	return err == nil && bytes.HasPrefix(whole, data)
}
