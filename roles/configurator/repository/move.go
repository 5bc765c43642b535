package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// marker says what git is at. It stands on disk while a git command may change
// something, so that whoever finds it knows that git was killed, which leaves its
// locks, and the work tree between two commits. Without it nothing is undone, and
// no lock removed: it would be that of somebody else.
type marker struct {
	From Version `json:"from,omitempty"`
	To   Version `json:"to,omitempty"` // "": the branch is not moved
}

func (g *git) markerFile() string { return g.state("marker") }

// marked has do run git commands that change something.
func (g *git) marked(m marker, do func() error) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := writeFile(g.markerFile(), text, 0o600); err != nil {
		return err
	}
	err = do()
	if failed := (*gitError)(nil); errors.As(err, &failed) && !failed.ended {
		return err // the next operation settles it
	}
	return errors.Join(err, os.Remove(g.markerFile()))
}

// settle finishes or undoes what was cut off.
func (g *git) settle(ctx context.Context) error {
	text, err := os.ReadFile(g.markerFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var m marker
	if err := json.Unmarshal(text, &m); err != nil || m.From != "" && !g.isVersion(m.From) || m.To != "" && !g.isVersion(m.To) {
		return fmt.Errorf("%s: not what is left when git is killed (remove it, and index.lock beside it, once git status shows what it should)", g.markerFile())
	}
	if err := g.unlock(ctx); err != nil {
		return err
	}
	if err := g.settleMove(ctx, m); err != nil {
		return fmt.Errorf("finish what was cut off: %w", err)
	}
	return os.Remove(g.markerFile())
}

// unlock removes the locks of the git that was killed.
func (g *git) unlock(ctx context.Context) error {
	names := []string{
		filepath.Join(g.dir, "index.lock"), filepath.Join(g.dir, "HEAD.lock"),
		filepath.Join(g.common, g.ref()+".lock"), filepath.Join(g.common, "shallow.lock"),
	}
	if remote, err := g.remote(ctx); err == nil {
		names = append(names, filepath.Join(g.common, "refs/remotes", remote, g.branch+".lock"))
	}
	for _, name := range names {
		err := os.Remove(name)
		if err == nil {
			g.opts.Log.WarnContext(ctx, "removed a lock that a git command left when it was killed", "path", name)
		} else if ignoreMissing(err) != nil {
			return err
		}
	}
	return nil
}

// settleMove finishes a move, if the branch was moved. The work tree comes after,
// so else there is nothing to undo: what was pushed is fetched again, and what was
// not is made anew.
func (g *git) settleMove(ctx context.Context, m marker) error {
	if m.To == "" {
		return nil
	}
	head, err := g.head(ctx)
	if err != nil || head != m.To {
		return err
	}
	if shows, err := g.checkedOut(ctx); err != nil || !shows {
		return err
	}
	return g.finish(ctx, m)
}

// move moves the branch and, where it is checked out, the work tree. ErrMoved if
// it is not at from any more.
func (g *git) move(ctx context.Context, from, to Version) error {
	if from == to {
		return nil
	}
	m := marker{from, to}
	if err := g.checkFree(ctx, m); err != nil {
		return err
	}
	shows, err := g.checkedOut(ctx)
	if err != nil {
		return err
	}
	return g.marked(m, func() error {
		if err := g.setBranch(ctx, from, to); err != nil || !shows {
			return err
		}
		return g.checkOut(ctx, m)
	})
}

// setBranch moves the branch, if it is at from.
func (g *git) setBranch(ctx context.Context, from, to Version) error {
	old := string(from)
	if from == "" {
		old = g.nothing()
	}
	_, err := g.run(ctx, "update-ref", "-m", "grl: limits", g.ref(), string(to), old)
	if err == nil {
		return nil
	}
	if head, bad := g.head(ctx); bad == nil && head != from {
		return ErrMoved
	}
	return err
}

// checkOut brings the work tree to where the branch was moved, or moves the branch
// back.
func (g *git) checkOut(ctx context.Context, m marker) error {
	_, _ = g.run(ctx, "update-index", "-q", "--refresh") // fails where files differ, which is looked at next
	// As git merge --ff-only does: what people changed stays, or nothing is done.
	_, err := g.run(ctx, "read-tree", "-m", "-u", "--no-recurse-submodules", g.tree(m.From), string(m.To))
	if failed := (*gitError)(nil); err == nil || errors.As(err, &failed) && !failed.ended {
		return err
	}
	// A disk that was full may have left files of ours, to which read-tree objects.
	if err = g.finish(ctx, m); err == nil {
		return nil
	}
	if m.From == "" {
		_, bad := g.run(ctx, "update-ref", "-d", g.ref(), string(m.To))
		return errors.Join(err, bad)
	}
	return errors.Join(err, g.setBranch(ctx, m.To, m.From))
}

// change is a file that two commits have differently.
type change struct {
	path     string // in the work tree
	old, new blob   // id of zeros: there is none
}

func (c change) deletes() bool { return strings.Trim(c.new.id, "0") == "" }
func (c change) adds() bool    { return strings.Trim(c.old.id, "0") == "" }

// changed returns what a move changes.
func (g *git) changed(ctx context.Context, m marker) ([]change, error) {
	out, err := g.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", g.tree(m.From), string(m.To))
	if err != nil {
		return nil, err
	}
	var changes []change
	fields := records(out) // of each file two
	for pair := range slices.Chunk(fields, 2) {
		f := strings.Fields(strings.TrimPrefix(pair[0], ":")) // modes, ids, kind of change
		if len(f) != 5 || len(pair) != 2 {
			return nil, fmt.Errorf("git diff-tree says %q", pair)
		}
		changes = append(changes, change{pair[1], blob{f[2], f[0]}, blob{f[3], f[1]}})
	}
	return changes, nil
}

// finish brings the index and the work tree, which may be anywhere between the two
// commits of a move, to the second one.
func (g *git) finish(ctx context.Context, m marker) error {
	changes, err := g.changed(ctx, m)
	if err != nil {
		return err
	}
	if err := g.checkEdited(ctx, m, changes); err != nil {
		return err
	}
	var gone, entries, written bytes.Buffer
	for _, c := range changes {
		if c.deletes() {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", c.new.id, c.path)
			continue
		}
		fmt.Fprintf(&entries, "%s %s\t%s\x00", c.new.mode, c.new.id, c.path)
		if c.new.mode != modeModule {
			written.WriteString(c.path + "\x00")
		}
	}
	gone.Write(entries.Bytes()) // first what goes: a directory may take its place
	if _, err := g.runWith(ctx, call{input: &gone}, "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	for _, c := range changes {
		if c.deletes() && c.old.mode != modeModule {
			if err := g.removeFile(c.path); err != nil {
				return err
			}
		}
	}
	_, err = g.runWith(ctx, call{input: &written}, "checkout-index", "--force", "--quiet", "-u", "-z", "--stdin")
	return err
}

// removeFile removes a file of the work tree and the directories that are empty
// then, as git does.
func (g *git) removeFile(path string) error {
	root, err := os.OpenRoot(g.top) // a link that people put above it leads nowhere else
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return nil // it is gone, or what takes its place is there
	}
	if err := errors.Join(err, root.Remove(path)); err != nil {
		return err
	}
	for above := filepath.Dir(path); above != "."; above = filepath.Dir(above) {
		if root.Remove(above) != nil {
			break // it has more
		}
	}
	return nil
}
