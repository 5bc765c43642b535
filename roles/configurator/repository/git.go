package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"grl/limiter/limitsfile"
)

const (
	// gitWithin is how long one git command may take.
	gitWithin = 30 * time.Second
	// mostOutput bounds what one prints, in bytes: all files, and their names.
	mostOutput = 2 * limitsfile.MaxTotalBytes
	// mostError bounds what is told of an error of git, in bytes.
	mostError = 500
	// ourEmail is that of who commits here; the author is who changed the limits.
	ourEmail = "rlc@grl"
)

// git is a checkout.
type git struct {
	opts   Options
	top    string // of the work tree
	dir    string // .git, or what a linked work tree has instead
	common string // .git, where branches are
	prefix string // of Path within the work tree, with a slash at the end; "": it is the top
	branch string
	ssh    string // the command for ssh
	// empty is the tree without files; its length is that of all ids.
	empty string
}

// openGit opens the checkout that a path is in; nil: it is in none.
func openGit(ctx context.Context, o Options) (*git, error) {
	g := &git{opts: o, branch: o.Branch}
	var err error
	if g.top, err = g.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
		none := errors.Is(err, exec.ErrNotFound) || strings.Contains(err.Error(), "not a git repository")
		if none && !inCheckout(o.Path) {
			return nil, nil
		}
		return nil, fmt.Errorf("open the checkout that %s is in: %w", o.Path, err)
	}
	for _, ask := range []struct {
		answer *string
		args   []string
	}{
		{&g.prefix, []string{"rev-parse", "--show-prefix"}},
		{&g.common, []string{"rev-parse", "--path-format=absolute", "--git-common-dir"}},
		{&g.empty, []string{"hash-object", "-t", "tree", "--stdin"}},
		{&g.dir, []string{"rev-parse", "--absolute-git-dir"}}, // last: from then on it is used
	} {
		out, err := g.runWith(ctx, call{dir: o.Path}, ask.args...)
		if err != nil {
			return nil, err
		}
		*ask.answer = strings.TrimSuffix(string(out), "\n")
	}
	if g.branch == "" {
		if g.branch, err = g.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD"); err != nil {
			return nil, fmt.Errorf("no branch is checked out in %s: name one in configurator.branch", g.top)
		}
	}
	if _, err := g.run(ctx, "check-ref-format", g.ref()); err != nil {
		return nil, fmt.Errorf("%q is no name of a branch", g.branch)
	}
	ssh, _ := g.line(ctx, "config", "--get", "core.sshCommand") // fails if there is none
	g.ssh = cmp.Or(ssh, "ssh") + " -o BatchMode=yes"
	return g, os.MkdirAll(g.state(""), 0o700)
}

// inCheckout reports whether a .git is in a directory or above, as far as git
// looks: so git, or what it needs of it, is missing or damaged, and it is no plain
// directory.
func inCheckout(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		above := filepath.Dir(dir)
		if above == dir || device(above) != device(dir) {
			return false
		}
		dir = above
	}
}

// device returns the file system that a directory is on; 0: it cannot be told.
func device(dir string) uint64 {
	var stat syscall.Stat_t
	if syscall.Stat(dir, &stat) != nil {
		return 0
	}
	return stat.Dev
}

// state returns the path of a file of ours.
func (g *git) state(name string) string { return filepath.Join(g.dir, "grl", name) }

// ref is the branch.
func (g *git) ref() string { return "refs/heads/" + g.branch }

// call is what a git command runs with.
type call struct {
	input io.Reader
	env   []string
	dir   string // where it runs; "": the top of the work tree
}

// run runs a git command and returns what it prints.
func (g *git) run(ctx context.Context, args ...string) ([]byte, error) {
	return g.runWith(ctx, call{}, args...)
}

// line returns the line that a command prints.
func (g *git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// settings keep hooks, and what else a configuration may make git do besides, from
// running.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass=", "color.ui=false", "submodule.recurse=false",
	"gc.auto=0", "maintenance.auto=false", "log.showSignature=false", "i18n.commitEncoding=UTF-8", "i18n.logOutputEncoding=UTF-8",
}

func (g *git) runWith(ctx context.Context, c call, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	options := []string{"--literal-pathspecs"}
	for _, s := range settings {
		options = append(options, "-c", s)
	}
	if g.dir != "" {
		options = append(options, "--git-dir="+g.dir)
	}
	if g.dir != "" && c.dir == "" { // elsewhere git would go to the top
		options = append(options, "--work-tree="+g.top)
	}
	cmd := exec.CommandContext(ctx, g.opts.Git, append(options, args...)...)
	cmd.Dir = cmp.Or(c.dir, g.top, g.opts.Path)
	cmd.Stdin = c.input
	cmd.Env = slices.Concat(environment(), []string{"GIT_SSH_COMMAND=" + g.ssh}, c.env)
	// It ends with this process, however that ends, so that the next one to open
	// the repository does not meet it at work; and with all it started when it
	// takes too long. The first goes by the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	stdout, stderr := bounded{most: mostOutput}, bounded{most: 16 * mostError, drop: true}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A helper that goes on in the background and keeps the pipes is no failure.
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		failed := &gitError{command: args[0], ended: ended(ctx, err), err: err, text: shown(stderr.String())}
		if ctx.Err() != nil {
			failed.err = ctx.Err()
		}
		return stdout.Bytes(), failed
	}
	return stdout.Bytes(), nil
}

// environment is that of git: nothing asks a person, or is set by one.
func environment() []string {
	env := []string{"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "SSH_ASKPASS") && !strings.HasPrefix(v, "LC_") {
			env = append(env, v)
		}
	}
	return env
}

// gitError is a git command that failed.
type gitError struct {
	command string
	ended   bool // by itself, so it left no locks
	err     error
	text    string // what it said
}

func (e *gitError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("git %s: %v: %s", e.command, e.err, e.text), ": ")
}

func (e *gitError) Unwrap() error { return e.err }

// ended reports whether a command that failed with err ended by itself, or never
// began.
func ended(ctx context.Context, err error) bool {
	exit := (*exec.ExitError)(nil)
	return ctx.Err() == nil && (!errors.As(err, &exit) || exit.Exited())
}

// exitCode returns that of the command that failed; 0: there is none.
func exitCode(err error) int {
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// password is that of a URL, with the name before it.
var password = regexp.MustCompile(`://[^/@\s]*@`)

// shown returns what git said, for people: part of it comes from other machines.
func shown(text string) string {
	text = password.ReplaceAllString(strings.TrimSpace(text), "://")
	text = strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	text = strings.ReplaceAll(text, "\n", "; ")
	return strings.ToValidUTF8(text[:min(len(text), mostError)], "")
}

// bounded is a buffer that takes no more than so many bytes. What is more is an
// error, or is dropped.
type bounded struct {
	bytes.Buffer
	most int
	drop bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) <= b.most {
		return b.Buffer.Write(p)
	}
	if !b.drop {
		return 0, fmt.Errorf("it prints more than %d bytes", b.most)
	}
	b.Buffer.Write(p[:b.most-b.Len()])
	return len(p), nil
}

// head returns the commit of the branch; "": there is none yet.
func (g *git) head(ctx context.Context) (Version, error) {
	id, err := g.line(ctx, "rev-parse", "--verify", "--quiet", g.ref())
	if exitCode(err) != 1 {
		return Version(id), err
	}
	// A branch that git cannot read is none to it either.
	if _, err := os.Lstat(filepath.Join(g.common, g.ref())); err == nil {
		return "", fmt.Errorf("branch %q is damaged in %s", g.branch, g.top)
	}
	return "", nil
}

// checkedOut reports whether the work tree shows the branch.
func (g *git) checkedOut(ctx context.Context) (bool, error) {
	current, err := g.line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exitCode(err) == 1 {
		return false, nil // a commit is checked out, and no branch
	}
	return current == g.ref(), err
}

// isVersion reports whether v may go to git as an argument.
func (g *git) isVersion(v Version) bool {
	return len(v) == len(g.empty) && strings.Trim(string(v), "0123456789abcdef") == ""
}

// tree returns what git takes for the files of a version.
func (g *git) tree(v Version) string { return cmp.Or(string(v), g.empty) }
