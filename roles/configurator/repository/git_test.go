package repository

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
