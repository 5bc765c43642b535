package repository

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/limiter/limitsfile"
)

// TestMain keeps the configuration of whoever runs the tests out of git, and lets
// the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVariable); dir != "" {
		beVictim(dir)
	}
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

var robot = Author{"grl configurator", ourEmail}

// person runs git in a directory as somebody who edits limits.
func person(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// edit has a person write files, empty text removes one, commit and, where there
// is a remote, push them.
func edit(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if text == "" {
			person(t, dir, "rm", "--quiet", name)
			continue
		}
		writeText(t, filepath.Join(dir, name), text)
		person(t, dir, "add", "--force", "--", name)
	}
	person(t, dir, "commit", "--quiet", "--message", "by hand")
	if person(t, dir, "remote") != "" {
		person(t, dir, "push", "--quiet", "origin", "HEAD")
	}
}

func writeText(t testing.TB, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func text(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// limits returns a limits file.
func limits(service string, rps int) string {
	return fmt.Sprintf("service: %s\nowner: team\nbuckets:\n  - {name: all, limit: {rps: %d}, behavior: deny}\n", service, rps)
}

// emptyRemote returns a bare repository without a commit.
func emptyRemote(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "limits.git")
	person(t, ".", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	return dir
}

func clone(t testing.TB, remote string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkout")
	person(t, ".", "clone", "--quiet", remote, dir)
	return dir
}

// world is a remote with limits, the checkout of a configurator, and that of a
// person.
type world struct {
	remote, dir, ann string
}

// newWorld copies what firstWorld made: git would take most of the time of the
// tests.
func newWorld(t testing.TB) world {
	t.Helper()
	first := firstWorld(t)
	base := t.TempDir()
	w := world{filepath.Join(base, "limits.git"), filepath.Join(base, "checkout"), filepath.Join(base, "ann")}
	for dir, from := range map[string]string{w.remote: first.remote, w.dir: first.dir, w.ann: first.dir} {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{w.dir, w.ann} {
		config := filepath.Join(dir, ".git/config")
		writeText(t, config, strings.ReplaceAll(text(t, config), first.remote, w.remote))
	}
	return w
}

var firstOnce struct {
	sync.Once
	world
}

func firstWorld(t testing.TB) world {
	t.Helper()
	firstOnce.Do(func() {
		base := filepath.Join(os.Getenv("HOME"), "world")
		w := world{remote: filepath.Join(base, "limits.git"), dir: filepath.Join(base, "checkout")}
		person(t, ".", "init", "--quiet", "--bare", "--initial-branch=main", w.remote)
		person(t, ".", "clone", "--quiet", w.remote, w.dir)
		edit(t, w.dir, map[string]string{"shop.yaml": limits("shop", 1), "cart.yaml": limits("cart", 1), "notes.txt": "to read\n"})
		firstOnce.world = w
	})
	return firstOnce.world
}

// rig is an open repository.
type rig struct {
	*Repository
	t   testing.TB
	log *log
}

// log takes what is logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func open(t testing.TB, dir string, options ...func(*Options)) rig {
	t.Helper()
	l := &log{}
	o := Options{Path: dir, Log: slog.New(slog.NewTextHandler(l, nil))}
	for _, option := range options {
		option(&o)
	}
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return rig{r, t, l}
}

func onBranch(name string) func(*Options) { return func(o *Options) { o.Branch = name } }

func (r rig) fetch() Version {
	r.t.Helper()
	v, err := r.Fetch(r.t.Context())
	if err != nil {
		r.t.Fatalf("Fetch: %v", err)
	}
	return v
}

func (r rig) files(v Version) map[string]string {
	r.t.Helper()
	list, err := r.Files(r.t.Context(), v)
	if err != nil {
		r.t.Fatalf("Files: %v", err)
	}
	files := make(map[string]string)
	for _, f := range list {
		files[f.Name] = string(f.Data)
	}
	return files
}

func (r rig) commit(base Version, files map[string]string) Version {
	r.t.Helper()
	v, err := r.Commit(r.t.Context(), base, changes(files), robot, "rlc: limits\n")
	if err != nil {
		r.t.Fatalf("Commit: %v", err)
	}
	return v
}

// changes are those of files; empty text removes one.
func changes(files map[string]string) []limitsfile.Source {
	var list []limitsfile.Source
	for name, text := range files {
		s := limitsfile.Source{Name: name}
		if text != "" {
			s.Data = []byte(text)
		}
		list = append(list, s)
	}
	return list
}

// checkFiles fails the test unless a version has just these limits files.
func (r rig) checkFiles(v Version, want map[string]string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.files(v)); diff != "" {
		r.t.Errorf("files of %s (-want +got):\n%s", v.Short(), diff)
	}
}

// checkClean fails the test unless the checkout shows its branch, which is the
// remote's, and nothing of ours is left in it.
func checkClean(t testing.TB, dir string) {
	t.Helper()
	if status := person(t, dir, "status", "--porcelain", "--untracked-files=all"); status != "" {
		t.Errorf("git status of %s: %q, want nothing", dir, status)
	}
	for _, name := range []string{"marker", "scratch"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git/grl", name)); err == nil {
			t.Errorf(".git/grl/%s is left", name)
		}
	}
	person(t, dir, "fsck", "--strict", "--no-dangling")
}

// checkError fails the test unless an error says all of some words.
func checkError(t testing.TB, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s succeeds, want an error that says %q", what, words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s = %v, want it to say %q", what, err, w)
		}
	}
}
