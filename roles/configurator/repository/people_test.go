package repository

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeopleAreAtWork: what people have changed and not committed is never
// overwritten, and stays in the way until they are done.
func TestPeopleAreAtWork(t *testing.T) {
	t.Parallel()
	write := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { writeText(t, filepath.Join(dir, name), "by hand\n") }
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		named   string // in the error
		undo    []string
	}{
		{"edited", write("shop.yaml"), "shop.yaml", []string{"checkout", "shop.yaml"}},
		{"staged", func(t *testing.T, dir string) {
			write("shop.yaml")(t, dir)
			person(t, dir, "add", "shop.yaml")
		}, "shop.yaml", []string{"reset", "--quiet", "--hard"}},
		{"staged and put back", func(t *testing.T, dir string) {
			write("shop.yaml")(t, dir)
			person(t, dir, "add", "shop.yaml")
			writeText(t, filepath.Join(dir, "shop.yaml"), limits("shop", 1))
		}, "shop.yaml", []string{"reset", "--quiet", "--hard"}},
		{"removed from the index", func(t *testing.T, dir string) { person(t, dir, "rm", "--quiet", "--cached", "shop.yaml") }, "shop.yaml", []string{"reset", "--quiet", "--hard"}},
		{"emptied, of what goes", func(t *testing.T, dir string) { writeText(t, filepath.Join(dir, "notes.txt"), "") }, "notes.txt", []string{"checkout", "notes.txt"}},
		{"not tracked", write("team/new.yaml"), "team/new.yaml", []string{"clean", "--quiet", "-fd"}},
		{"ignored", func(t *testing.T, dir string) {
			writeText(t, filepath.Join(dir, ".git/info/exclude"), "team\n")
			write("team/new.yaml")(t, dir)
		}, "team/new.yaml", []string{"clean", "--quiet", "-fdx"}},
		{"a file where a directory is to be", write("team"), "team", []string{"clean", "--quiet", "-fd"}},
		{"a directory where a file is to be", write("team/new.yaml/deep/mine"), "team/new.yaml/deep/mine", []string{"clean", "--quiet", "-fd"}},
		{"a link where a directory is to be", func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "team")); err != nil {
				t.Fatal(err)
			}
		}, "team", []string{"clean", "--quiet", "-fd"}},
		{"in a merge", func(t *testing.T, dir string) {
			person(t, dir, "checkout", "--quiet", "-b", "side")
			person(t, dir, "commit", "--quiet", "--allow-empty", "--message", "side")
			person(t, dir, "checkout", "--quiet", "main")
			person(t, dir, "merge", "--quiet", "--no-ff", "--no-commit", "side")
		}, "a merge, cherry-pick or revert is under way", []string{"merge", "--abort"}},
		{"a git at work", write(".git/index.lock"), "index.lock", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := open(t, w.dir)
			base := r.fetch()
			tt.prepare(t, w.dir)
			before := snapshot(t, w.dir)

			// What the configurator itself would write stays at home.
			mine := map[string]string{"shop.yaml": limits("shop", 2), "team/new.yaml": limits("new", 2)}
			if !strings.Contains(tt.name, "of what goes") {
				_, err := r.Commit(t.Context(), base, changes(mine), robot, "m")
				checkError(t, "Commit", err, tt.named)
				if now := person(t, w.remote, "rev-parse", "main"); now != string(base) {
					t.Errorf("it was pushed, though it cannot be shown")
				}
			}
			// And what others pushed is not taken in.
			edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 3), "team/new.yaml": limits("new", 3), "notes.txt": ""})
			for range 2 {
				_, err := r.Fetch(t.Context())
				checkError(t, "Fetch", err, tt.named)
			}
			if after := snapshot(t, w.dir); after != before {
				t.Errorf("the checkout became\n%s\nwant\n%s", after, before)
			}
			if head, err := r.Head(t.Context()); err != nil || head != base {
				t.Errorf("Head = %s, %v, want the base", head, err)
			}
			if _, err := os.Stat(r.git.markerFile()); err == nil {
				t.Error("a marker is left")
			}

			if tt.undo == nil {
				if err := os.Remove(filepath.Join(w.dir, ".git/index.lock")); err != nil {
					t.Fatal(err)
				}
			} else {
				person(t, w.dir, tt.undo...)
			}
			r.checkFiles(r.fetch(), map[string]string{"shop.yaml": limits("shop", 3), "team/new.yaml": limits("new", 3), "cart.yaml": limits("cart", 1)})
			checkClean(t, w.dir)
		})
	}
}

// snapshot is all that a checkout shows to a person.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return filepath.SkipDir
		case d.Type().IsRegular():
			b.WriteString(name + ": " + text(t, name))
		default:
			b.WriteString(name + " " + d.Type().String() + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + person(t, dir, "ls-files", "--stage")
}

// TestPeopleAreAtWorkElsewhere: what is changed in files that a move does not touch
// stays as it is.
func TestPeopleAreAtWorkElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	writeText(t, filepath.Join(w.dir, "notes.txt"), "by hand\n")
	writeText(t, filepath.Join(w.dir, "other.yaml"), "not tracked\n")
	writeText(t, filepath.Join(w.dir, "added.yaml"), "added\n")
	person(t, w.dir, "add", "added.yaml")
	person(t, w.dir, "rm", "--quiet", "cart.yaml")
	status := person(t, w.dir, "status", "--porcelain")

	made := r.commit(base, map[string]string{"shop.yaml": limits("shop", 2)})
	person(t, w.ann, "pull", "--quiet")
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 3)})
	if next := r.fetch(); next == made {
		t.Error("Fetch does not take in what was pushed")
	}
	if after := person(t, w.dir, "status", "--porcelain"); after != status {
		t.Errorf("git status became\n%s\nwant\n%s", after, status)
	}
	if got := text(t, filepath.Join(w.dir, "notes.txt")); got != "by hand\n" {
		t.Errorf("notes.txt became %q", got)
	}
	if got := text(t, filepath.Join(w.dir, "shop.yaml")); got != limits("shop", 3) {
		t.Errorf("shop.yaml is %q", got)
	}
}

// TestSameEditByHand: a file that says already what others pushed is not in the
// way.
func TestSameEditByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	r.fetch()
	writeText(t, filepath.Join(w.dir, "shop.yaml"), limits("shop", 3))
	writeText(t, filepath.Join(w.dir, "team/new.yaml"), limits("new", 3))
	if err := os.Remove(filepath.Join(w.dir, "cart.yaml")); err != nil {
		t.Fatal(err)
	}
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 3), "team/new.yaml": limits("new", 3), "cart.yaml": limits("cart", 3)})
	r.fetch()
	checkClean(t, w.dir)
}

func TestDirectoriesAndFilesChangePlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edit(t, w.ann, map[string]string{"a/b/c.yaml": limits("c", 1), "d": "a file\n"})
	r := open(t, w.dir)
	r.fetch()
	person(t, w.ann, "rm", "--quiet", "-r", "a", "d")
	edit(t, w.ann, map[string]string{"a": "a file\n", "d/e.yaml": limits("e", 1)})
	r.checkFiles(r.fetch(), map[string]string{"shop.yaml": limits("shop", 1), "cart.yaml": limits("cart", 1), "d/e.yaml": limits("e", 1)})
	checkClean(t, w.dir)
}

func TestUnpushedCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	origin := person(t, w.dir, "config", "remote.origin.url")
	person(t, w.dir, "remote", "remove", "origin")
	r := open(t, w.dir)
	alone := r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)}) // there is nowhere to push to
	checkClean(t, w.dir)
	person(t, w.dir, "remote", "add", "origin", origin)
	edit(t, w.ann, map[string]string{"cart.yaml": limits("cart", 3)})

	// Those of a configurator go: the remote wins.
	r.checkFiles(r.fetch(), map[string]string{"shop.yaml": limits("shop", 1), "cart.yaml": limits("cart", 3)})
	checkClean(t, w.dir)
	if !strings.Contains(r.log.String(), "never pushed") || !strings.Contains(r.log.String(), alone.Short()) {
		t.Errorf("the log says %q", r.log)
	}

	// Those of people stay, and are not pushed for them.
	writeText(t, filepath.Join(w.dir, "shop.yaml"), limits("shop", 4))
	person(t, w.dir, "commit", "--quiet", "--all", "--message", "not \x1b[31mready")
	kept := person(t, w.dir, "rev-parse", "HEAD")
	theirs := person(t, w.remote, "rev-parse", "main")
	for _, news := range []bool{false, true} {
		if news {
			person(t, w.ann, "pull", "--quiet")
			edit(t, w.ann, map[string]string{"cart.yaml": limits("cart", 5)})
			theirs = person(t, w.remote, "rev-parse", "main")
		}
		_, err := r.Fetch(t.Context())
		checkError(t, "Fetch", err, "not at origin", "not  [31mready", kept[:7], "git reset --hard "+theirs[:12])
		if _, err := r.Commit(t.Context(), Version(kept), changes(map[string]string{"new.yaml": limits("new", 1)}), robot, "m"); !errors.Is(err, ErrMoved) {
			t.Errorf("Commit = %v, want ErrMoved", err)
		}
		if now := person(t, w.remote, "rev-parse", "main"); now != theirs {
			t.Errorf("the remote is at %s, want %s", now, theirs)
		}
		checkClean(t, w.dir)
	}
	person(t, w.dir, "pull", "--quiet", "--rebase", "origin", "main")
	person(t, w.dir, "push", "--quiet", "origin", "main")
	r.checkFiles(r.fetch(), map[string]string{"shop.yaml": limits("shop", 4), "cart.yaml": limits("cart", 5)})
}

func TestCommitsOfPeopleWithoutARemote(t *testing.T) {
	t.Parallel()
	dir := alone(t)
	edit(t, dir, map[string]string{"shop.yaml": limits("shop", 1)})
	r := open(t, dir)
	base := r.fetch()
	edit(t, dir, map[string]string{"shop.yaml": limits("shop", 2)})
	if _, err := r.Commit(t.Context(), base, changes(map[string]string{"new.yaml": limits("new", 1)}), robot, "m"); !errors.Is(err, ErrMoved) {
		t.Fatalf("Commit = %v, want ErrMoved", err)
	}
	r.checkFiles(r.commit(r.fetch(), map[string]string{"new.yaml": limits("new", 1)}), map[string]string{"shop.yaml": limits("shop", 2), "new.yaml": limits("new", 1)})
	checkClean(t, dir)
}

// TestHistoryRewritten: what was taken in does not vanish because somebody forced a
// push, until people say so.
func TestHistoryRewritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	made := r.commit(base, map[string]string{"shop.yaml": limits("shop", 2)})
	edit(t, w.dir, map[string]string{"shop.yaml": limits("shop", 3)})
	taken := r.fetch()
	for _, rewritten := range []Version{made, base} {
		person(t, w.remote, "update-ref", "refs/heads/main", string(rewritten))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = open(t, w.dir)
		for range 2 {
			_, err := r.Fetch(t.Context())
			checkError(t, "Fetch", err, `the history of branch "main" was rewritten at origin`, taken.Short(), "git reset --hard "+rewritten.Short())
		}
		if _, err := r.Commit(t.Context(), taken, changes(map[string]string{"shop.yaml": limits("shop", 4)}), robot, "m"); !errors.Is(err, ErrMoved) {
			t.Errorf("Commit = %v, want ErrMoved", err)
		}
		if now := person(t, w.remote, "rev-parse", "main"); now != string(rewritten) {
			t.Errorf("the remote is at %s, want %s: what was taken away came back", now, rewritten)
		}
		checkClean(t, w.dir)
	}
	person(t, w.dir, "fetch", "--quiet", "origin")
	_, err := r.Fetch(t.Context())
	checkError(t, "Fetch after git fetch", err, "was rewritten")
	person(t, w.dir, "reset", "--quiet", "--hard", string(base))
	if next := r.fetch(); next != base {
		t.Errorf("Fetch once people have confirmed = %s, want %s", next, base)
	}
	r.commit(base, map[string]string{"shop.yaml": limits("shop", 5)})
	checkClean(t, w.dir)
}

func TestBranchGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	person(t, w.remote, "update-ref", "-d", "refs/heads/main")
	_, err := r.Fetch(t.Context())
	checkError(t, "Fetch", err, `branch "main"`, "is gone from origin")
	if _, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m"); !errors.Is(err, ErrMoved) {
		t.Errorf("Commit = %v, want ErrMoved", err)
	}
	person(t, w.dir, "push", "--quiet", "origin", "main")
	r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)})
}

// TestLocks: a lock is removed only where a git of ours was killed.
func TestLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	locks := []string{"index.lock", "HEAD.lock", "refs/heads/main.lock", "refs/remotes/origin/main.lock", "shallow.lock"}
	for _, name := range locks {
		writeText(t, filepath.Join(w.dir, ".git", name), "")
	}
	_, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
	checkError(t, "Commit", err, "index.lock")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, w.dir)
	for _, name := range locks {
		if _, err := os.Stat(filepath.Join(w.dir, ".git", name)); err != nil {
			t.Errorf("%s was removed", name)
		}
	}
	writeText(t, r.git.markerFile(), "{}")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, w.dir)
	r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)})
	checkClean(t, w.dir)

	writeText(t, r.git.markerFile(), `{"to":"--help"}`)
	_, err = r.Fetch(t.Context())
	checkError(t, "Fetch with a damaged marker", err, "grl/marker")
}

// TestMoveCutOff: wherever a move is cut off, the next process finishes it, and
// what people changed since is kept.
func TestMoveCutOff(t *testing.T) {
	t.Parallel()
	// Files that a move changes, removes, adds and leaves.
	files := map[string]string{"shop.yaml": limits("shop", 2), "cart.yaml": "", "team/new.yaml": limits("new", 2), "deep/er/x.yaml": limits("x", 2)}
	full := func(t *testing.T, w world, _, to string) {
		for name := range files {
			if files[name] != "" {
				writeText(t, filepath.Join(w.dir, name), files[name])
			}
		}
		person(t, w.dir, "read-tree", to)
		if err := os.Remove(filepath.Join(w.dir, "cart.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		cut  func(t *testing.T, w world, from, to string)
		want string // in the error of Fetch; "": Open finishes the move
	}{
		{"before all", func(t *testing.T, w world, from, _ string) { person(t, w.dir, "update-ref", "refs/heads/main", from) }, ""},
		{"once the branch is moved", func(*testing.T, world, string, string) {}, ""},
		{"with a lock", func(t *testing.T, w world, _, _ string) {
			writeText(t, filepath.Join(w.dir, ".git/index.lock"), "DIRC")
		}, ""},
		{"in a file", func(t *testing.T, w world, _, _ string) {
			writeText(t, filepath.Join(w.dir, "shop.yaml"), limits("shop", 2)[:20])
			writeText(t, filepath.Join(w.dir, "team/new.yaml"), "")
		}, ""},
		{"between files", func(t *testing.T, w world, _, _ string) {
			writeText(t, filepath.Join(w.dir, "team/new.yaml"), limits("new", 2))
			for _, name := range []string{"cart.yaml", "shop.yaml"} {
				if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}, ""},
		{"after all", full, ""},
		{"and a person edits another file", func(t *testing.T, w world, _, _ string) {
			writeText(t, filepath.Join(w.dir, "notes.txt"), "by hand\n")
			writeText(t, filepath.Join(w.dir, "mine.yaml"), "by hand\n")
		}, ""},
		{"and a person edits that file", func(t *testing.T, w world, _, _ string) {
			writeText(t, filepath.Join(w.dir, "shop.yaml"), "by hand\n")
		}, "shop.yaml"},
		{"and a person adds that file", func(t *testing.T, w world, _, _ string) {
			writeText(t, filepath.Join(w.dir, "team/new.yaml"), "by hand\n")
		}, "team/new.yaml"},
		{"and a person stages that file", func(t *testing.T, w world, from, to string) {
			full(t, w, from, to)
			writeText(t, filepath.Join(w.dir, "shop.yaml"), "by hand\n")
			person(t, w.dir, "add", "shop.yaml")
			writeText(t, filepath.Join(w.dir, "shop.yaml"), limits("shop", 2))
		}, "shop.yaml"},
		{"and a person moves on", func(t *testing.T, w world, _, to string) {
			person(t, w.dir, "reset", "--quiet", "--hard", to)
			person(t, w.dir, "checkout", "--quiet", "-b", "side")
			writeText(t, filepath.Join(w.dir, "shop.yaml"), "by hand\n")
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := open(t, w.dir, onBranch("main"))
			from := r.fetch()
			to, err := r.git.build(t.Context(), from, changes(files), robot, "m")
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(w.dir, "shop.yaml"))
			if err != nil || string(text) != limits("shop", 1) {
				t.Fatalf("building a commit changes the work tree: %q, %v", text, err)
			}
			person(t, w.dir, "push", "--quiet", "origin", string(to)+":main")
			writeText(t, r.git.markerFile(), `{"from":"`+string(from)+`","to":"`+string(to)+`"}`)
			person(t, w.dir, "update-ref", "refs/heads/main", string(to))
			tt.cut(t, w, string(from), string(to))
			before := snapshot(t, w.dir)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}

			rig := open(t, w.dir, onBranch("main"))
			if tt.want != "" {
				for range 2 {
					_, err := rig.Fetch(t.Context())
					checkError(t, "Fetch", err, "finish what was cut off", tt.want)
				}
				if _, err := rig.Commit(t.Context(), to, changes(map[string]string{"shop.yaml": limits("shop", 9)}), robot, "m"); err == nil {
					t.Error("Commit succeeds")
				}
				if after := snapshot(t, w.dir); after != before {
					t.Errorf("the checkout became\n%s\nwant\n%s", after, before)
				}
				person(t, w.dir, "checkout", "--quiet", string(from), "--", ".")
				person(t, w.dir, "clean", "--quiet", "-fd")
			}
			if v := rig.fetch(); v != to {
				t.Errorf("Fetch = %s, want %s", v, to)
			}
			if strings.Contains(tt.name, "a person") && tt.want == "" {
				if !strings.Contains(snapshot(t, w.dir), "by hand") {
					t.Error("the edit of a person is gone")
				}
				person(t, w.dir, "reset", "--quiet", "--hard")
				person(t, w.dir, "clean", "--quiet", "-fd")
			}
			rig.checkFiles(to, map[string]string{"shop.yaml": limits("shop", 2), "team/new.yaml": limits("new", 2), "deep/er/x.yaml": limits("x", 2)})
			checkClean(t, w.dir)
			rig.commit(to, map[string]string{"shop.yaml": limits("shop", 9)})
		})
	}
}
