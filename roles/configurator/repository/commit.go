package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"grl/limiter/limitsfile"
)

// commit makes a commit beside the work tree, pushes it, and only then moves to
// it.
func (g *git) commit(ctx context.Context, base Version, changes []limitsfile.Source, by Author, message string) (Version, error) {
	if err := g.settle(ctx); err != nil {
		return "", err
	}
	head, err := g.head(ctx)
	if err != nil {
		return "", err
	}
	if head != base {
		return "", ErrMoved
	}
	remote, err := g.remote(ctx)
	if err != nil {
		return "", err
	}
	made, err := g.build(ctx, base, changes, by, message)
	if err != nil || made == base {
		return made, err
	}
	if remote == "" {
		if err := g.move(ctx, base, made); err != nil {
			return "", err
		}
		return made, nil
	}
	// What is in the way of the move is better known before others see the commit.
	if err := g.checkFree(ctx, marker{base, made}); err != nil {
		return "", err
	}
	if err := g.push(ctx, remote, base, made); err != nil {
		return "", err
	}
	if err := errors.Join(g.take(made), g.move(ctx, base, made)); err != nil {
		return "", fmt.Errorf("%s was pushed: %w", made.Short(), err)
	}
	return made, nil
}

// build makes the objects of a commit, with an index of its own. It returns base
// if nothing changes.
func (g *git) build(ctx context.Context, base Version, changes []limitsfile.Source, by Author, message string) (Version, error) {
	scratch, env, done, err := g.scratch()
	if err != nil {
		return "", err
	}
	defer done()
	if _, err := g.runWith(ctx, call{env: env}, "read-tree", g.tree(base)); err != nil {
		return "", err
	}
	ids, err := g.store(ctx, scratch, changes)
	if err != nil {
		return "", err
	}
	var info bytes.Buffer
	for i, f := range changes {
		mode := "100644"
		if f.Data == nil {
			mode = "0"
		}
		fmt.Fprintf(&info, "%s %s\t%s%s\x00", mode, ids[i], g.prefix, f.Name)
	}
	if _, err := g.runWith(ctx, call{input: &info, env: env}, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	out, err := g.runWith(ctx, call{env: env}, "write-tree")
	if err != nil {
		return "", err
	}
	tree := strings.TrimSpace(string(out))
	if old, err := g.line(ctx, "rev-parse", "--verify", g.tree(base)+"^{tree}"); err != nil || old == tree {
		return base, err
	}
	args := []string{"commit-tree", tree}
	if base != "" {
		args = append(args, "-p", string(base))
	}
	out, err = g.runWith(ctx, call{input: strings.NewReader(plainText(message)), env: identity(by)}, args...)
	return Version(strings.TrimSpace(string(out))), err
}

// scratch returns an empty directory of ours, and what makes git use an index in
// it.
func (g *git) scratch() (dir string, env []string, done func(), err error) {
	dir = g.state("scratch")
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return "", nil, nil, err
	}
	done = func() { _ = os.RemoveAll(dir) } // the next one does it otherwise
	return dir, []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}, done, nil
}

// store stores data and returns the ids of it, for each change; that of one
// without data is not one of any.
func (g *git) store(ctx context.Context, scratch string, changes []limitsfile.Source) ([]string, error) {
	var names strings.Builder
	ids := make([]string, len(changes))
	for i, f := range changes {
		if f.Data == nil {
			ids[i] = g.nothing()
			continue
		}
		name := strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(scratch, name), f.Data, 0o600); err != nil {
			return nil, err
		}
		names.WriteString(name + "\n")
	}
	// One process for all: a thousand would take seconds.
	out, err := g.runWith(ctx, call{input: strings.NewReader(names.String()), dir: scratch}, "hash-object", "-w", "--no-filters", "--stdin-paths")
	if err != nil {
		return nil, err
	}
	stored := strings.Fields(string(out))
	for i := range ids {
		if ids[i] == "" {
			if len(stored) == 0 {
				return nil, fmt.Errorf("git hash-object returns too few ids: %q", out)
			}
			ids[i], stored = stored[0], stored[1:]
		}
	}
	return ids, nil
}

// nothing is the id that stands for no object.
func (g *git) nothing() string { return strings.Repeat("0", len(g.empty)) }

// push publishes a commit that follows base. The lease has the remote take it
// only if the branch is at base there still, or is not there if nothing of it was
// ever seen: so nothing that others pushed is overwritten, and nothing that they
// took away comes back.
func (g *git) push(ctx context.Context, remote string, base, made Version) error {
	taken := g.taken()
	if taken != "" && taken != base {
		return ErrMoved
	}
	return g.marked(marker{}, func() error {
		out, err := g.run(ctx, "push", "--quiet", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
			"--force-with-lease="+g.ref()+":"+string(taken), "--", remote, string(made)+":"+g.ref())
		if err == nil {
			return nil
		}
		for line := range strings.Lines(string(out)) {
			if fields := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(fields) == 3 && fields[0] == "!" {
				return g.rejected(ctx, remote, taken, fmt.Errorf("%s: %w", shown(fields[2]), err))
			}
		}
		return err
	})
}

// rejected returns ErrMoved if a push was rejected since others pushed before.
// What the reason says of that differs with versions, and with whether this side
// found it or the other.
func (g *git) rejected(ctx context.Context, remote string, expected Version, reason error) error {
	now, err := g.theirs(ctx, remote)
	if err != nil {
		return errors.Join(reason, err)
	}
	if now != expected {
		return ErrMoved
	}
	return reason
}

// identity returns an author as git can have one.
func identity(by Author) []string {
	name, email := plainName(by.Name), plainName(by.Email)
	if name == "" {
		name = "unknown"
	}
	if email == "" {
		email = "unknown@grl"
	}
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_NAME=grl configurator", "GIT_COMMITTER_EMAIL=" + ourEmail}
}

// plainName returns a name or address without what would end it in a commit, what
// git strips from its ends, and what cannot be seen.
func plainName(s string) string {
	const most = 256 // bytes
	s = strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Trim(strings.ToValidUTF8(s[:min(len(s), most)], ""), " .,:;\"\\'")
}

// plainText returns a message that git can store, and terminals can show.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\ufffd"))
}
