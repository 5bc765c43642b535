package repository

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/limiter/limitsfile"
)

func TestTakesInAndPushes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	r.checkFiles(base, map[string]string{"shop.yaml": limits("shop", 1), "cart.yaml": limits("cart", 1)})

	made := r.commit(base, map[string]string{"shop.yaml": limits("shop", 2), "cart.yaml": "", "team/new.yaml": limits("new", 3)})
	want := map[string]string{"shop.yaml": limits("shop", 2), "team/new.yaml": limits("new", 3)}
	r.checkFiles(made, want)
	checkClean(t, w.dir)
	if got := person(t, w.remote, "rev-parse", "main"); got != string(made) {
		t.Errorf("the remote is at %s, want %s", got, made)
	}
	if got := text(t, filepath.Join(w.dir, "shop.yaml")); got != want["shop.yaml"] {
		t.Errorf("the work tree has %q", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "cart.yaml")); err == nil {
		t.Error("the work tree has cart.yaml still")
	}

	person(t, w.ann, "pull", "--quiet")
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 4), "notes.txt": "", "team/new.yaml": ""})
	next := r.fetch()
	r.checkFiles(next, map[string]string{"shop.yaml": limits("shop", 4)})
	checkClean(t, w.dir)
	if head, err := r.Head(t.Context()); err != nil || head != next {
		t.Errorf("Head = %q, %v, want %q", head, err, next)
	}
	author, subject, err := r.Describe(t.Context(), next)
	if err != nil || author != "ann" || subject != "by hand" {
		t.Errorf("Describe = %q, %q, %v", author, subject, err)
	}
	if again := r.fetch(); again != next {
		t.Errorf("Fetch without news = %s, want %s", again, next)
	}
}

func TestCommitOfWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	if made := r.commit(base, map[string]string{"shop.yaml": limits("shop", 1), "none.yaml": ""}); made != base {
		t.Errorf("Commit of what is there = %s, want the base %s", made, base)
	}
	checkClean(t, w.dir)
}

func TestOthersPushInBetween(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"cart.yaml", "shop.yaml"} { // another one, and the same
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := open(t, w.dir)
			base := r.fetch()
			edit(t, w.ann, map[string]string{file: limits(strings.TrimSuffix(file, ".yaml"), 7)})
			theirs := person(t, w.remote, "rev-parse", "main")

			if _, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m"); !errors.Is(err, ErrMoved) {
				t.Fatalf("Commit = %v, want ErrMoved", err)
			}
			if now := person(t, w.remote, "rev-parse", "main"); now != theirs {
				t.Errorf("the remote is at %s, want %s as before", now, theirs)
			}
			checkClean(t, w.dir)
			if head, err := r.Head(t.Context()); err != nil || head != base {
				t.Errorf("Head = %s, %v, want the base", head, err)
			}
			again := r.fetch()
			if string(again) != theirs {
				t.Errorf("Fetch = %s, want %s", again, theirs)
			}
			want := maps.Clone(r.files(again))
			want["shop.yaml"] = limits("shop", 2)
			r.checkFiles(r.commit(again, map[string]string{"shop.yaml": limits("shop", 2)}), want)
			checkClean(t, w.dir)
		})
	}
}

func TestCommitNeedsTheHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	first := r.fetch()
	r.commit(first, map[string]string{"shop.yaml": limits("shop", 2)})
	if _, err := r.Commit(t.Context(), first, changes(map[string]string{"shop.yaml": limits("shop", 3)}), robot, "m"); !errors.Is(err, ErrMoved) {
		t.Errorf("Commit on an old version = %v, want ErrMoved", err)
	}
}

func TestFolderInACheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edit(t, w.ann, map[string]string{"a b/limits/shop.yaml": limits("shop", 5), "a b/limits/team/x.yaml": limits("x", 5), "a b/limits2/no.yaml": limits("no", 1)})
	person(t, w.dir, "pull", "--quiet")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(w.dir, "a b/limits"), link); err != nil {
		t.Fatal(err)
	}
	r := open(t, link)
	base := r.fetch()
	r.checkFiles(base, map[string]string{"shop.yaml": limits("shop", 5), "team/x.yaml": limits("x", 5)})
	made := r.commit(base, map[string]string{"shop.yaml": "", "team/x.yaml": limits("x", 6)})
	r.checkFiles(made, map[string]string{"team/x.yaml": limits("x", 6)})
	if got := text(t, filepath.Join(w.dir, "shop.yaml")); got != limits("shop", 1) {
		t.Errorf("the file of that name outside of the folder became %q", got)
	}
	checkClean(t, w.dir)

	// Even without the folder there is a way back.
	edit(t, clone(t, w.remote), map[string]string{"a b/limits/team/x.yaml": ""})
	none := r.fetch()
	r.checkFiles(none, map[string]string{})
	r.checkFiles(r.commit(none, map[string]string{"y.yaml": limits("y", 1)}), map[string]string{"y.yaml": limits("y", 1)})
	checkClean(t, w.dir)
}

func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	remote := emptyRemote(t)
	tests := []struct {
		name string
		dir  string
	}{
		{"with a remote", clone(t, remote)},
		{"without a remote", alone(t)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := open(t, tt.dir)
			base := r.fetch()
			if base != "" {
				t.Fatalf("Fetch = %q, want no version", base)
			}
			r.checkFiles(base, map[string]string{})
			if _, _, err := r.Describe(t.Context(), base); err != nil {
				t.Error(err)
			}
			writeText(t, filepath.Join(tt.dir, "mine.txt"), "of a person\n")
			made := r.commit(base, map[string]string{"shop.yaml": limits("shop", 1)})
			r.checkFiles(made, map[string]string{"shop.yaml": limits("shop", 1)})
			if got := text(t, filepath.Join(tt.dir, "mine.txt")); got != "of a person\n" {
				t.Errorf("the file of a person became %q", got)
			}
			if again := r.fetch(); again != made {
				t.Errorf("Fetch = %s, want %s", again, made)
			}
			if err := os.Remove(filepath.Join(tt.dir, "mine.txt")); err != nil {
				t.Fatal(err)
			}
			checkClean(t, tt.dir)
		})
	}
}

// alone returns a checkout without a commit or a remote.
func alone(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	person(t, dir, "init", "--quiet", "--initial-branch=main")
	return dir
}

func TestNoFileInTheWayOfTheFirstCommit(t *testing.T) {
	t.Parallel()
	dir := alone(t)
	writeText(t, filepath.Join(dir, "shop.yaml"), "of a person\n")
	r := open(t, dir)
	_, err := r.Commit(t.Context(), "", changes(map[string]string{"shop.yaml": limits("shop", 1)}), robot, "m")
	checkError(t, "Commit", err, "shop.yaml", "not committed")
	if head, err := r.Head(t.Context()); err != nil || head != "" {
		t.Errorf("Head = %q, %v, want none", head, err)
	}
	if got := text(t, filepath.Join(dir, "shop.yaml")); got != "of a person\n" {
		t.Errorf("the file of a person became %q", got)
	}
}

func TestBranches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		branch  string
		prepare func(t *testing.T, w world)
		want    map[string]string // before a commit
	}{
		{"not there yet", "limits", func(*testing.T, world) {}, map[string]string{}},
		{"only at the remote", "limits/prod", func(t *testing.T, w world) {
			person(t, w.ann, "checkout", "--quiet", "-b", "limits/prod")
			edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 9)})
		}, map[string]string{"shop.yaml": limits("shop", 9), "cart.yaml": limits("cart", 1)}},
		{"another one is checked out", "main", func(t *testing.T, w world) {
			person(t, w.dir, "checkout", "--quiet", "-b", "work")
			writeText(t, filepath.Join(w.dir, "shop.yaml"), "being edited\n")
			edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 9)})
		}, map[string]string{"shop.yaml": limits("shop", 9), "cart.yaml": limits("cart", 1)}},
		{"no branch is checked out", "main", func(t *testing.T, w world) {
			person(t, w.dir, "checkout", "--quiet", "--detach")
			edit(t, w.ann, map[string]string{"cart.yaml": limits("cart", 9)})
		}, map[string]string{"shop.yaml": limits("shop", 1), "cart.yaml": limits("cart", 9)}},
		{"name of an option", "-f", func(*testing.T, world) {}, map[string]string{}},
		{"name of anything", "ü $(touch x)'\"`;|&", func(*testing.T, world) {}, nil},
		{"name with signs", "ü$(touch@x)'\"`;|&%00{}", func(*testing.T, world) {}, map[string]string{}},
		{"name of a tag", "v1", func(t *testing.T, w world) { person(t, w.dir, "tag", "v1") }, map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.prepare(t, w)
			before := person(t, w.dir, "status", "--porcelain", "--branch") + text(t, filepath.Join(w.dir, "shop.yaml"))
			if tt.want == nil {
				_, err := Open(t.Context(), Options{Path: w.dir, Branch: tt.branch})
				checkError(t, "Open", err, "no name of a branch")
				return
			}
			r := open(t, w.dir, onBranch(tt.branch))
			base := r.fetch()
			r.checkFiles(base, tt.want)
			made := r.commit(base, map[string]string{"new.yaml": limits("new", 1)})
			want := maps.Clone(tt.want)
			want["new.yaml"] = limits("new", 1)
			r.checkFiles(made, want)
			if got := person(t, w.remote, "rev-parse", "refs/heads/"+tt.branch); got != string(made) {
				t.Errorf("the remote is at %s, want %s", got, made)
			}
			if again := r.fetch(); again != made {
				t.Errorf("Fetch = %s, want %s", again, made)
			}
			if after := person(t, w.dir, "status", "--porcelain", "--branch") + text(t, filepath.Join(w.dir, "shop.yaml")); withoutCounts(after) != withoutCounts(before) {
				t.Errorf("the work tree is not what it was: %s, want %s", after, before)
			}
		})
	}
}

// withoutCounts leaves out how far a branch is from that of the remote.
func withoutCounts(status string) string {
	first, rest, _ := strings.Cut(status, "\n")
	first, _, _ = strings.Cut(first, " [")
	return first + rest
}

func TestDetachedWithoutABranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person(t, w.dir, "checkout", "--quiet", "--detach")
	_, err := Open(t.Context(), Options{Path: w.dir})
	checkError(t, "Open", err, "no branch is checked out", "configurator.branch")
}

func TestShallowClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 2)})
	dir := filepath.Join(t.TempDir(), "shallow")
	person(t, ".", "clone", "--quiet", "--depth=1", "file://"+w.remote, dir)
	r := open(t, dir)
	made := r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 3)})
	person(t, w.ann, "pull", "--quiet")
	edit(t, w.ann, map[string]string{"cart.yaml": limits("cart", 4)})
	next := r.fetch()
	if next == made {
		t.Error("Fetch does not take in what was pushed")
	}
	r.checkFiles(next, map[string]string{"shop.yaml": limits("shop", 3), "cart.yaml": limits("cart", 4)})
	r.commit(next, map[string]string{"shop.yaml": limits("shop", 5)})
	checkClean(t, dir)
}

func TestLinkedWorkTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "linked")
	person(t, w.dir, "worktree", "add", "--quiet", "-b", "prod", dir)
	r := open(t, dir)
	made := r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 3)})
	if got := person(t, w.remote, "rev-parse", "prod"); got != string(made) {
		t.Errorf("the remote is at %s, want %s", got, made)
	}
	checkClean(t, w.dir)
	if status := person(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("git status: %q, want nothing", status)
	}
}

func TestWhichRemote(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare [][]string
		want    string
		err     string
	}{
		{"none", nil, "", ""},
		{"only one", [][]string{{"remote", "add", "up.stream", "/none"}}, "up.stream", ""},
		{"origin of several", [][]string{{"remote", "add", "aa", "/none"}, {"remote", "add", "origin", "/none"}}, "origin", ""},
		{"that of the branch", [][]string{{"remote", "add", "origin", "/none"}, {"config", "branch.main.remote", "aa"}}, "aa", ""},
		{"the branch follows a local one", [][]string{{"config", "branch.main.remote", "."}}, "", ""},
		{"several", [][]string{{"remote", "add", "aa", "/none"}, {"remote", "add", "bb", "/none"}}, "", "has the remotes aa, bb: say which"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := alone(t)
			for _, args := range tt.prepare {
				person(t, dir, args...)
			}
			got, err := open(t, dir).git.remote(t.Context())
			if tt.err != "" {
				checkError(t, "remote", err, tt.err)
			} else if err != nil || got != tt.want {
				t.Errorf("remote = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestFilesAreThoseOfReadDir(t *testing.T) {
	t.Parallel()
	dir := alone(t)
	files := map[string]string{
		"b.yaml": "b", "a.yml": "a", "a/z.yaml": "z", "a.d/y.yaml": "y", "A.yaml": "upper", "empty.yaml": " ", ".hidden.yaml": "x", ".dir/x.yaml": "x", "a/.x/y.yaml": "x",
		"README.md": "x", "x.YAML": "x", "-rf.yaml": "option", "with space.yaml": "s", "new\nline.yaml": "n", "tab\t.yaml": "t", "ü.yaml": "u", `quote".yaml`: "q",
		"no end.yaml": "no line end", "many.yaml": strings.Repeat("0123456789\n", 100_000), "zero.yaml": "a\x00b\n",
	}
	edit(t, dir, files)
	link := filepath.Join(dir, "docs")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	person(t, dir, "add", "docs")
	person(t, dir, "commit", "--quiet", "--message", "a link")

	want, err := limitsfile.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Name, _ = filepath.Rel(dir, want[i].Name)
	}
	r := open(t, dir)
	got, err := r.Files(t.Context(), r.fetch())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Files (-ReadDir +got):\n%s", diff)
	}
	if len(got) != 15 {
		t.Errorf("%d files, want 15", len(got))
	}
	writeText(t, filepath.Join(dir, "b.yaml"), "not committed")
	if now := r.files(r.fetch())["b.yaml"]; now != "b" {
		t.Errorf("Files has what is not committed: %q", now)
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	t.Parallel()
	dir := alone(t)
	edit(t, dir, map[string]string{"a.yaml": "a", "large.yaml": strings.Repeat(" ", limitsfile.MaxFileBytes+1)})
	if err := os.Symlink("a.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	person(t, dir, "add", "link.yaml")
	person(t, dir, "commit", "--quiet", "--message", "a link")
	r := open(t, dir)
	_, err := r.Files(t.Context(), r.fetch())
	want := "large.yaml: found 16.0 MiB, expected at most 16 MiB\nlink.yaml: found a symbolic link, expected a file"
	if err == nil || err.Error() != want {
		t.Errorf("Files = %v, want\n%s", err, want)
	}
	for _, v := range []Version{"--help", "main", "HEAD", Version(strings.Repeat("f", 40)), Version(strings.Repeat("0", 40) + "\n")} {
		if files, err := r.Files(t.Context(), v); err == nil {
			t.Errorf("Files(%q) = %d files, want an error", v, len(files))
		}
		if _, _, err := r.Describe(t.Context(), v); err == nil {
			t.Errorf("Describe(%q) succeeds, want an error", v)
		}
	}
}

func TestFilesTooMuchTogether(t *testing.T) {
	t.Parallel()
	g := &git{}
	var entries []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		entries = append(entries, "100644 blob 1234 16777216\t"+name+".yaml")
	}
	if _, ids, err := g.parseTree(entries[:4]); err != nil || len(ids) != 4 {
		t.Errorf("parseTree of 64 MiB = %v, %v", ids, err)
	}
	_, _, err := g.parseTree(entries)
	checkError(t, "parseTree", err, "e.yaml: found more than 64 MiB in all files up to this one")
	for _, entry := range []string{"", "x", "\t", "100644 blob 1\ta.yaml", "100644 blob 1 -\ta.yaml", "a b c d e\ta.yaml"} {
		if _, _, err := g.parseTree([]string{entry}); err == nil {
			t.Errorf("parseTree(%q) succeeds, want an error", entry)
		}
	}
	for _, answer := range []string{"", "1 blob 3\n", "1 missing\n", "1 blob 4\nabcd\n", "1 blob 3\nab", "1 blob 3\nabc"} {
		if _, err := parseBlobs([]limitsfile.Size{{Name: "a.yaml", Bytes: 3}}, []byte(answer)); err == nil {
			t.Errorf("parseBlobs(%q) succeeds, want an error", answer)
		}
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	tests := []struct {
		name    string
		by      Author
		message string
		want    string // name, address, message
	}{
		{"plain", Author{"Ada L.", "ada@example.com"}, "m", "Ada L|ada@example.com|m"},
		{"new line and header", Author{"eve\nauthor root <r@x> 0 +0000", "e@x>\nparent 0"}, "m", "eveauthor root r@x 0 +0000|e@xparent 0|m"},
		{"empty", Author{}, "", "unknown|unknown@grl|"},
		{"only what git strips", Author{" .,:;<>\"\\' ", "<>"}, "m", "unknown|unknown@grl|m"},
		{"an option", Author{"--amend", "-e"}, "--all\n-F /etc/passwd", "--amend|-e|--all -F /etc/passwd"},
		{"shell", Author{"$(touch x)`id`", "a;b|c"}, "$(touch x)", "$(touch x)`id`|a;b|c|$(touch x)"},
		{"turned round and hidden", Author{"a\u202eb\u200b\x1b[31mc\x00", "a\x00b"}, "x\x1b[2J\x00y", "ab[31mc|ab|x[2Jy"},
		{"not UTF-8", Author{"\xffa\xfe", "\xff"}, "b\xff", "a|unknown@grl|b\ufffd"},
		{"long", Author{strings.Repeat("ü", 200_000), "x"}, "m", strings.Repeat("ü", 128) + "|x|m"},
		{"comment and scissors", Author{"a", "b"}, "# not a comment\n\n------------------------ >8 ------------------------\nbody", "a|b|# not a comment"},
	}
	base := r.fetch()
	for i, tt := range tests {
		made, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", i+10)}), tt.by, tt.message)
		if err != nil {
			t.Fatalf("%s: Commit: %v", tt.name, err)
		}
		if got := person(t, w.remote, "log", "-1", "--format=%an|%ae|%s", string(made)); got != tt.want {
			t.Errorf("%s: the commit is by %q, want %q", tt.name, got, tt.want)
		}
		if got := person(t, w.remote, "log", "-1", "--format=%P %cn <%ce>", string(made)); got != string(base)+" grl configurator <rlc@grl>" {
			t.Errorf("%s: parent and committer %q", tt.name, got)
		}
		author, subject, err := r.Describe(t.Context(), made)
		if err != nil || strings.ContainsAny(author+subject, "\n\x00\x1b") {
			t.Errorf("%s: Describe = %q, %q, %v", tt.name, author, subject, err)
		}
		base = made
	}
	checkClean(t, w.dir)
}

func TestHostileFileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := t.TempDir()
	for kind, r := range map[string]rig{"git": open(t, w.dir), "directory": open(t, plain)} {
		base := r.fetch()
		before := r.files(base)
		for _, name := range []string{
			"", ".", "..", "../x.yaml", "a/../../x.yaml", "/etc/x.yaml", ".git/x.yaml", ".git/hooks/pre-push", "a/.git/x.yaml", ".hidden.yaml", "a//b.yaml", "./a.yaml",
			"x.txt", "a\x00.yaml", "a.yaml/", "x.yaml/../../y.yaml",
		} {
			_, err := r.Commit(t.Context(), base, []limitsfile.Source{{Name: name, Data: []byte("x")}}, robot, "m")
			checkError(t, kind+": Commit of "+name, err, "no name of a limits file")
		}
		_, err := r.Commit(t.Context(), base, []limitsfile.Source{{Name: "a.yaml", Data: []byte("x")}, {Name: "a.yaml"}}, robot, "m")
		checkError(t, kind+": Commit", err, `"a.yaml" is to be written twice`)
		_, err = r.Commit(t.Context(), base, []limitsfile.Source{{Name: "a.yaml", Data: make([]byte, limitsfile.MaxFileBytes+1)}}, robot, "m")
		checkError(t, kind+": Commit", err, "a.yaml: found 16.0 MiB")

		for _, name := range []string{"-rf.yaml", "new\nline.yaml", "tab\t.yaml", "a b/'\"$x`.yaml", ":(top)x.yaml", "*.yaml", "\xff.yaml", "a..b.yaml", "100644 x\ty.yaml"} {
			before[name] = limits("shop", 1)
			base = r.commit(base, map[string]string{name: before[name]})
			r.checkFiles(base, before)
		}
		for name := range before {
			base = r.commit(base, map[string]string{name: ""})
			delete(before, name)
			r.checkFiles(base, before)
		}
	}
	checkClean(t, w.dir)
}

func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"pre-push", "reference-transaction", "post-index-change", "post-checkout", "post-merge", "fsmonitor"} {
		name := filepath.Join(w.dir, ".git/hooks", hook)
		writeText(t, name, "#!/bin/sh\necho "+hook+" >>"+ran+"\n")
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 2)})
	person(t, w.dir, "config", "core.hooksPath", filepath.Join(w.dir, ".git/hooks"))
	person(t, w.dir, "config", "core.fsmonitor", filepath.Join(w.dir, ".git/hooks/fsmonitor"))
	r := open(t, w.dir)
	if _, err := os.Stat(ran); err == nil {
		if err := os.Remove(ran); err != nil { // those of git config
			t.Fatal(err)
		}
	}
	r.commit(r.fetch(), map[string]string{"cart.yaml": limits("cart", 3)})
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("hooks ran: %q", data)
	}
}

func TestRemoteThatRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := filepath.Join(w.remote, "hooks/pre-receive")
	writeText(t, hook, "#!/bin/sh\nprintf 'limits are \\033[31mfrozen\\n' >&2\nexit 1\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	r := open(t, w.dir)
	base := r.fetch()
	_, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
	checkError(t, "Commit", err, "hook declined", "frozen")
	if errors.Is(err, ErrMoved) || err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("Commit = %q", err)
	}
	if head, err := r.Head(t.Context()); err != nil || head != base {
		t.Errorf("Head = %s, %v, want the base", head, err)
	}
	checkClean(t, w.dir)
}

func TestRemoteThatIsAway(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"closed port": "git://" + closed.Addr().String() + "/x", "no such directory": "/none/of/these.git"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := open(t, w.dir)
			base := r.fetch()
			person(t, w.dir, "remote", "set-url", "origin", url)
			if _, err := r.Fetch(t.Context()); err == nil {
				t.Error("Fetch succeeds")
			}
			_, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
			if err == nil || errors.Is(err, ErrMoved) {
				t.Errorf("Commit = %v, want why it cannot push", err)
			}
			checkClean(t, w.dir)
			person(t, w.dir, "remote", "set-url", "origin", w.remote)
			r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)})
			checkClean(t, w.dir)
		})
	}
}

func TestRemoteThatHangs(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hangs.Close() })
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	person(t, w.dir, "remote", "set-url", "origin", "git://"+hangs.Addr().String()+"/x")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Commit(ctx, base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
		done <- err
	}()
	if err := hangs.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	conn, err := hangs.Accept() // it is at the push
	if err != nil {
		t.Fatalf("Accept: %v; Commit: %v", err, <-done)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Commit = %v, want context.Canceled", err)
	}
	// Nothing of git is alive that would hold the connection open.
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for buffer := make([]byte, 1<<10); err == nil; {
		_, err = conn.Read(buffer)
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("a git process is left")
	}
	if _, err := os.Stat(r.git.markerFile()); err != nil {
		t.Errorf("no marker of the git that was killed: %v", err)
	}
	person(t, w.dir, "remote", "set-url", "origin", w.remote)
	r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)})
	checkClean(t, w.dir)
}

// TestHelpersEndWithGit: what git starts to reach a remote ends with it, and can ask
// nobody.
func TestHelpersEndWithGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	ssh, pipe, args := filepath.Join(dir, "ssh"), filepath.Join(dir, "pipe"), filepath.Join(dir, "args")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writeText(t, ssh, "#!/bin/sh\necho \"$GIT_TERMINAL_PROMPT $@\" >"+args+"\nexec sleep 600 3>"+pipe+"\n")
	if err := os.Chmod(ssh, 0o755); err != nil {
		t.Fatal(err)
	}
	person(t, w.dir, "config", "core.sshCommand", ssh+" -i key")
	person(t, w.dir, "remote", "set-url", "origin", "ssh://host.invalid/limits.git")
	r := open(t, w.dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.Fetch(ctx)
		done <- err
		if end, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = end.Close() // a Fetch that never got so far must not leave the test waiting
		}
	}()
	held, err := os.Open(pipe) // the helper runs
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Fetch = %v, want context.Canceled", err)
	}
	if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("reading what the helper has open: %v, want its end", err)
	}
	if got := text(t, args); !strings.HasPrefix(got, "0 -i key -o BatchMode=yes ") {
		t.Errorf("the helper was started with %q", got)
	}
}

func TestErrorsTellNoPasswords(t *testing.T) {
	t.Parallel()
	const want = "fatal: cannot reach https://example.com/x.git;  git://h/"
	if got := shown("fatal: cannot reach https://ann:secret@example.com/x.git\n\x1bgit://tok%40en@h/\n"); got != want {
		t.Errorf("shown = %q, want %q", got, want)
	}
	if got := shown(strings.Repeat("ü", 1000)); len(got) > mostError || strings.Contains(got, "\ufffd") {
		t.Errorf("shown has %d bytes: %q", len(got), got)
	}
}

func TestThousandFiles(t *testing.T) {
	w := newWorld(t)
	r := open(t, w.dir)
	files := make(map[string]string)
	for i := range 1000 {
		name := "team" + string(rune('a'+i%20)) + "/" + strings.Repeat("x", 1+i/20) + ".yaml"
		files[name] = limits("s", i+1)
	}
	if len(files) != 1000 {
		t.Fatalf("%d files", len(files))
	}
	base := r.fetch()
	// Time of the processor, of this process and all it runs, and the least of a
	// few: how long it takes on the clock depends on what else the machine does.
	const within = 2 * time.Second
	least := func(do func(try int)) time.Duration {
		least := time.Hour
		for try := range 5 {
			began := processorTime(t)
			do(try)
			if least = min(least, processorTime(t)-began); least < within {
				break
			}
		}
		return least
	}
	commit := least(func(try int) {
		for name := range files {
			files[name] = limits("s", try+1)
		}
		base = r.commit(base, files)
	})
	read := least(func(int) {
		if got := r.files(r.fetch()); len(got) != 1002 {
			t.Fatalf("%d files, want 1002", len(got))
		}
	})
	t.Logf("1,000 files take %v to commit and push, %v to fetch and read", commit, read)
	if commit > within || read > within {
		t.Errorf("want at most %v each", within)
	}
	checkClean(t, w.dir)
	if same := r.commit(base, files); same != base {
		t.Errorf("Commit of the same files = %s, want %s", same, base)
	}
}

// processorTime returns that of this process and of those it waited for.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	total := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			t.Fatal(err)
		}
		total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return total
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "file")
	writeText(t, file, "x")
	damaged := clone(t, w.remote)
	writeText(t, filepath.Join(damaged, ".git/HEAD"), "")
	noGit := func(o *Options) { o.Git = "no-such-git" }
	tests := []struct {
		name   string
		o      Options
		option func(*Options)
		want   string
	}{
		{"nothing there", Options{Path: filepath.Join(file, "x")}, nil, "not a directory"},
		{"a file", Options{Path: file}, nil, "is no directory"},
		{"bare", Options{Path: w.remote}, nil, "work tree"},
		{"inside .git", Options{Path: filepath.Join(w.dir, ".git")}, nil, "work tree"},
		{"damaged", Options{Path: damaged}, nil, "not a git repository"},
		{"a checkout, and no git", Options{Path: w.dir}, noGit, "no-such-git"},
		{"name with a space", Options{Path: w.dir, Branch: "a b"}, nil, `"a b" is no name of a branch`},
		{"name that goes up", Options{Path: w.dir, Branch: "../../x"}, nil, "is no name of a branch"},
		{"name of a refspec", Options{Path: w.dir, Branch: "a:refs/heads/b"}, nil, "is no name of a branch"},
		{"name with a new line", Options{Path: w.dir, Branch: "a\nb"}, nil, "is no name of a branch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.option != nil {
				tt.option(&tt.o)
			}
			_, err := Open(t.Context(), tt.o)
			checkError(t, "Open", err, tt.want)
		})
	}
	r := open(t, w.dir)
	_, err := Open(t.Context(), Options{Path: w.dir})
	checkError(t, "a second Open", err, "another process has it open")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, w.dir)
}
