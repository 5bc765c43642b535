package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"grl/limiter/limitsfile"
)

const (
	// gitWithin is how long one git command may take.
	gitWithin = 30 * time.Second
	// remote is the one that is fetched from and pushed to, if there is one.
	remote = "origin"
	// markerName is the file that says which commit the branch and the work tree
	// are on their way to: git may be killed in between and leave its locks.
	markerName = "grl-target"
)

// git is a checkout.
type git struct {
	opts   Options
	top    string // of the work tree
	dir    string // .git
	prefix string // of Path within the work tree, with a slash at the end; "": it is the top
	branch string
}

// openGit opens the checkout that a path is in; nil: it is in none.
func openGit(ctx context.Context, o Options) (*git, error) {
	g := &git{opts: o, top: o.Path}
	out, err := g.run(ctx, nil, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix")
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, nil // a plain directory needs no git
		}
		if strings.Contains(err.Error(), "not a git repository") {
			return nil, nil
		}
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	g.top, g.dir, g.prefix = lines[0], lines[1], lines[2]
	g.branch = o.Branch
	if g.branch == "" {
		out, err := g.run(ctx, nil, "symbolic-ref", "--quiet", "--short", "HEAD")
		if err != nil {
			return nil, fmt.Errorf("no branch is checked out in %s: name one in configurator.branch", g.top)
		}
		g.branch = strings.TrimSpace(string(out))
	}
	return g, nil
}

// run runs a git command and returns what it prints.
func (g *git) run(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	return g.runWith(ctx, input, nil, args...)
}

func (g *git) runWith(ctx context.Context, input io.Reader, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.opts.Git, append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-C", g.opts.Path}, args...)...)
	cmd.Stdin = input
	cmd.Env = append(environment(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		text := strings.TrimSpace(stderr.String())
		return stdout.Bytes(), fmt.Errorf("git %s: %w: %s", args[0], err, text[:min(len(text), 500)])
	}
	return stdout.Bytes(), nil
}

// environment is that of git: nothing asks a person, or is set by one.
func environment() []string {
	env := []string{"GIT_TERMINAL_PROMPT=0", "GIT_SSH_COMMAND=ssh -o BatchMode=yes", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "LC_") {
			env = append(env, v)
		}
	}
	return env
}

// ref is the branch.
func (g *git) ref() string { return "refs/heads/" + g.branch }

// hasRemote reports whether there is something to fetch from.
func (g *git) hasRemote(ctx context.Context) bool {
	_, err := g.run(ctx, nil, "remote", "get-url", remote)
	return err == nil
}

// head returns the commit of the branch; "": there is none yet.
func (g *git) head(ctx context.Context) (Version, error) {
	out, err := g.run(ctx, nil, "rev-parse", "--verify", "--quiet", g.ref()+"^{commit}")
	if err != nil {
		if len(out) == 0 {
			return "", nil
		}
		return "", err
	}
	return Version(strings.TrimSpace(string(out))), nil
}

// fetch takes in the branch of the remote.
func (g *git) fetch(ctx context.Context) (Version, error) {
	head, err := g.head(ctx)
	if err != nil || !g.hasRemote(ctx) {
		return head, err
	}
	if _, err := g.run(ctx, nil, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", remote, "+"+g.ref()+":"+g.tracking()); err != nil {
		if strings.Contains(err.Error(), "couldn't find remote ref") {
			return head, nil // nothing was pushed yet
		}
		return "", err
	}
	out, err := g.run(ctx, nil, "rev-parse", g.tracking())
	if err != nil {
		return "", err
	}
	theirs := Version(strings.TrimSpace(string(out)))
	return theirs, g.moveTo(ctx, theirs)
}

func (g *git) tracking() string { return "refs/remotes/" + remote + "/" + g.branch }

// moveTo moves the branch and, where it is checked out, the work tree.
func (g *git) moveTo(ctx context.Context, to Version) error {
	head, err := g.head(ctx)
	if err != nil || head == to {
		return err
	}
	if err := g.mark(to); err != nil {
		return err
	}
	current, _ := g.run(ctx, nil, "symbolic-ref", "--quiet", "HEAD") // detached: no branch
	if strings.TrimSpace(string(current)) == g.ref() {
		_, err = g.run(ctx, nil, "reset", "--quiet", "--keep", string(to))
	} else {
		_, err = g.run(ctx, nil, "update-ref", g.ref(), string(to))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("move to %s (commit or undo what was edited in %s by hand): %w", to.Short(), g.top, err), g.unmark())
	}
	return g.unmark()
}

func (g *git) marker() string { return filepath.Join(g.dir, markerName) }

func (g *git) mark(to Version) error { return writeFile(g.marker(), []byte(to)) }

func (g *git) unmark() error { return os.Remove(g.marker()) }

// recover finishes a move that was cut off.
func (g *git) recover(ctx context.Context) error {
	to, err := os.ReadFile(g.marker())
	if err != nil {
		return nil // nothing was under way
	}
	for _, name := range []string{"index.lock", "HEAD.lock", g.ref() + ".lock", g.tracking() + ".lock"} {
		_ = os.Remove(filepath.Join(g.dir, name)) // there may be none
	}
	if _, err := g.run(ctx, nil, "reset", "--quiet", "--hard", string(to)); err != nil {
		return fmt.Errorf("finish what was cut off: %w", err)
	}
	return g.unmark()
}

// files returns the limits files of a commit.
func (g *git) files(ctx context.Context, v Version) ([]limitsfile.Source, error) {
	if v == "" {
		return nil, nil
	}
	out, err := g.run(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", string(v), "--", ":(top)"+g.prefix)
	if err != nil {
		return nil, err
	}
	var names []string
	var asked bytes.Buffer
	for _, entry := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, name, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(meta)
		if ext := path.Ext(name); !ok || len(fields) != 3 || fields[1] != "blob" || fields[0] == "120000" || ext != ".yaml" && ext != ".yml" {
			continue
		}
		names = append(names, strings.TrimPrefix(name, g.prefix))
		asked.WriteString(fields[2] + "\n")
	}
	if len(names) == 0 {
		return nil, nil
	}
	blobs, err := g.run(ctx, &asked, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	return readBlobs(names, blobs)
}

// readBlobs reads what cat-file --batch answers.
func readBlobs(names []string, answer []byte) ([]limitsfile.Source, error) {
	r := bufio.NewReader(bytes.NewReader(answer))
	var files []limitsfile.Source
	total := 0
	for _, name := range names {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: git says %q", name, strings.TrimSpace(line))
		}
		size, err := strconv.Atoi(fields[2])
		if total += size; err != nil || size > limitsfile.MaxFileBytes || total > limitsfile.MaxTotalBytes {
			return nil, fmt.Errorf("%s: has %s bytes; too large", name, fields[2])
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, err
		}
		if _, err := r.ReadByte(); err != nil {
			return nil, err
		}
		files = append(files, limitsfile.Source{Name: name, Data: data})
	}
	return files, nil
}

// describe returns author and subject of a commit.
func (g *git) describe(ctx context.Context, v Version) (author, subject string, err error) {
	if v == "" {
		return "limits repository", "empty", nil
	}
	out, err := g.run(ctx, nil, "log", "-1", "--format=%an%x00%s", string(v))
	if err != nil {
		return "", "", err
	}
	author, subject, _ = strings.Cut(strings.TrimSpace(string(out)), "\x00")
	return author, subject, nil
}

// commit makes a commit beside the work tree, pushes it, and only then moves to
// it.
func (g *git) commit(ctx context.Context, base Version, changes []limitsfile.Source, by Author, message string) (Version, error) {
	made, err := g.build(ctx, base, changes, by, message)
	if err != nil {
		return "", err
	}
	if g.hasRemote(ctx) {
		if _, err := g.run(ctx, nil, "push", "--quiet", "--porcelain", remote, string(made)+":"+g.ref()); err != nil {
			if text := err.Error(); strings.Contains(text, "rejected") || strings.Contains(text, "non-fast-forward") || strings.Contains(text, "fetch first") {
				return "", ErrMoved
			}
			return "", err
		}
	} else if head, err := g.head(ctx); err != nil || head != base {
		return "", errors.Join(err, ErrMoved)
	}
	return made, g.moveTo(ctx, made)
}

// build makes the objects of a commit in an index of its own.
func (g *git) build(ctx context.Context, base Version, changes []limitsfile.Source, by Author, message string) (Version, error) {
	index := filepath.Join(g.dir, "grl-index")
	defer os.Remove(index)
	env := []string{"GIT_INDEX_FILE=" + index}
	_ = os.Remove(index)
	if base != "" {
		if _, err := g.runWith(ctx, nil, env, "read-tree", string(base)); err != nil {
			return "", err
		}
	}
	var info bytes.Buffer
	for _, f := range changes {
		full, err := below(g.opts.Path, f.Name)
		if err != nil {
			return "", err
		}
		name, err := filepath.Rel(g.top, full)
		if err != nil {
			return "", err
		}
		if f.Data == nil {
			fmt.Fprintf(&info, "0 0000000000000000000000000000000000000000\t%s\x00", name)
			continue
		}
		out, err := g.run(ctx, bytes.NewReader(f.Data), "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&info, "100644 %s\t%s\x00", strings.TrimSpace(string(out)), name)
	}
	if _, err := g.runWith(ctx, &info, env, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := g.runWith(ctx, nil, env, "write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", strings.TrimSpace(string(tree))}
	if base != "" {
		args = append(args, "-p", string(base))
	}
	name, email := identity(by)
	who := []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_NAME=grl configurator", "GIT_COMMITTER_EMAIL=rlc@grl"}
	out, err := g.runWith(ctx, strings.NewReader(message), who, args...)
	return Version(strings.TrimSpace(string(out))), err
}

// identity returns an author as git can have one.
func identity(by Author) (name, email string) {
	plain := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, s))
	}
	if name = plain(by.Name); name == "" {
		name = "unknown"
	}
	if email = plain(by.Email); email == "" {
		email = "unknown@grl"
	}
	return name, email
}
