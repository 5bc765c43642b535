package repository

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/limiter/limitsfile"
)

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, filepath.Join(dir, "shop.yaml"), limits("shop", 1))
	writeText(t, filepath.Join(dir, "README.md"), "x")
	if err := os.Chmod(filepath.Join(dir, "shop.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A plain directory needs no git.
	r := open(t, dir, func(o *Options) { o.Git = "no-such-git" })
	base := r.fetch()
	made := r.commit(base, map[string]string{"shop.yaml": limits("shop", 2), "team/a/new.yaml": limits("new", 1), "none.yaml": ""})
	if made == base {
		t.Error("the version stays the same")
	}
	r.checkFiles(made, map[string]string{"shop.yaml": limits("shop", 2), "team/a/new.yaml": limits("new", 1)})
	if info, err := os.Stat(filepath.Join(dir, "shop.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("shop.yaml has mode %v, %v, want that of before", info.Mode(), err)
	}

	// What people write in between is not overwritten.
	writeText(t, filepath.Join(dir, "shop.yaml"), limits("shop", 3))
	if _, err := r.Files(t.Context(), made); !errors.Is(err, ErrMoved) {
		t.Errorf("Files of what is no more = %v, want ErrMoved", err)
	}
	if _, err := r.Commit(t.Context(), made, changes(map[string]string{"shop.yaml": limits("shop", 4)}), robot, "m"); !errors.Is(err, ErrMoved) {
		t.Errorf("Commit = %v, want ErrMoved", err)
	}
	next := r.fetch()
	r.checkFiles(next, map[string]string{"shop.yaml": limits("shop", 3), "team/a/new.yaml": limits("new", 1)})
	r.checkFiles(r.commit(next, map[string]string{"team/a/new.yaml": ""}), map[string]string{"shop.yaml": limits("shop", 3)})
	if same := r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 3)}); same != r.fetch() {
		t.Errorf("the version changes though no file does")
	}
	if author, subject, err := r.Describe(t.Context(), next); err != nil || author == "" || subject == "" {
		t.Errorf("Describe = %q, %q, %v", author, subject, err)
	}
	_, err := Open(t.Context(), Options{Path: dir})
	checkError(t, "a second Open", err, "another process has it open")
	if left := listing(t, dir); len(left) != 4 { // lock, README.md, shop.yaml, team/a
		t.Errorf("the directory has %q", left)
	}
}

// listing returns what is below a directory, but for directories with something in
// them.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			entries, err := os.ReadDir(name)
			if err != nil || len(entries) > 0 {
				return err
			}
		}
		rel, err := filepath.Rel(dir, name)
		names = append(names, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestVersionIsOfNamesAndData: what moves between files, or between a name and its
// data, is another version; where the directory is does not count.
func TestVersionIsOfNamesAndData(t *testing.T) {
	t.Parallel()
	seen := make(map[Version]int)
	for i, files := range []map[string]string{
		nil, {"a.yaml": "1"}, {"b.yaml": "1"}, {"a.yaml": "11"}, {"a.yaml": "1", "b.yaml": "1"}, {"a.yaml": "1 6 b.yaml 1 1"}, {"a.yaml": "", "b.yaml": "1"},
	} {
		var versions [2]Version
		for j := range versions {
			dir := t.TempDir()
			for name, data := range files {
				writeText(t, filepath.Join(dir, name), data)
			}
			versions[j] = open(t, dir).fetch()
		}
		if versions[0] != versions[1] {
			t.Errorf("%v has the versions %s", files, versions)
		}
		if other, ok := seen[versions[0]]; ok {
			t.Errorf("the files %d and %d have one version", other, i)
		}
		seen[versions[0]] = i
	}
}

func TestDirectoryWithLinks(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	writeText(t, filepath.Join(dir, ".real/shop.yaml"), limits("shop", 1))
	writeText(t, filepath.Join(outside, "cart.yaml"), limits("cart", 1))
	for name, to := range map[string]string{"a.yaml": ".real/shop.yaml", "b.yaml": ".real/shop.yaml", "cart.yaml": filepath.Join(outside, "cart.yaml")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, dir)
	base := r.fetch()
	r.checkFiles(base, map[string]string{"a.yaml": limits("shop", 1), "cart.yaml": limits("cart", 1)})
	made := r.commit(base, map[string]string{"a.yaml": limits("shop", 2), "cart.yaml": limits("cart", 2)})
	r.checkFiles(made, map[string]string{"a.yaml": limits("shop", 2), "cart.yaml": limits("cart", 2)})
	if got := text(t, filepath.Join(outside, "cart.yaml")); got != limits("cart", 1) {
		t.Errorf("the file outside of the directory became %q", got)
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, filepath.Join(dir, "shop.yaml"), limits("shop", 1))
	writeText(t, filepath.Join(dir, "team.yaml/x.yaml"), limits("x", 1))
	r := open(t, dir)
	base := r.fetch()
	before := listing(t, dir)
	for _, name := range []string{"team.yaml", "shop.yaml/new.yaml"} {
		_, err := r.Commit(t.Context(), base, []limitsfile.Source{
			{Name: "cart.yaml", Data: []byte(limits("cart", 1))}, {Name: "shop.yaml", Data: []byte(limits("shop", 2))}, {Name: name, Data: []byte("x")},
		}, robot, "m")
		if err == nil {
			t.Errorf("Commit of %s succeeds", name)
		}
		if now := r.fetch(); now != base {
			t.Errorf("Commit of %s changes some files", name)
		}
		if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
			t.Errorf("Commit of %s leaves something (-want +got):\n%s", name, diff)
		}
	}
}

// TestDirectoryCutOff stops a commit after each of its steps.
func TestDirectoryCutOff(t *testing.T) {
	t.Parallel()
	before := map[string]string{"shop.yaml": limits("shop", 1), "cart.yaml": limits("cart", 1), "gone.yaml": limits("gone", 1)}
	after := map[string]string{"shop.yaml": limits("shop", 2), "cart.yaml": limits("cart", 2), "team/new.yaml": limits("new", 2)}
	steps := []limitsfile.Source{
		{Name: "shop.yaml", Data: []byte(after["shop.yaml"])},
		{Name: "cart.yaml", Data: []byte(after["cart.yaml"])},
		{Name: "team/new.yaml", Data: []byte(after["team/new.yaml"])},
		{Name: "gone.yaml"},
	}
	for done := range 6 { // renames and removals
		for _, alive := range []bool{false, true} { // the process goes on, as after an error
			dir := t.TempDir()
			for name, data := range before {
				writeText(t, filepath.Join(dir, name), data)
			}
			r := open(t, dir)
			base := r.fetch()
			want := after
			if done == 0 { // before the journal is there
				want = before
				for i, s := range steps[:3] {
					if _, err := writePart(dir, s, i); err != nil {
						t.Fatal(err)
					}
				}
				writeText(t, filepath.Join(dir, partMark+journalName), "{")
			} else {
				j, err := prepare(dir, steps)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range j.Put[:min(done-1, 3)] {
					if err := os.Rename(filepath.Join(dir, p.Part), filepath.Join(dir, p.Name)); err != nil {
						t.Fatal(err)
					}
				}
				if done == 5 {
					if err := os.Remove(filepath.Join(dir, "gone.yaml")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !alive {
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				r = open(t, dir)
			}
			now := r.fetch()
			r.checkFiles(now, want)
			if (now == base) != (done == 0) {
				t.Errorf("cut off after step %d: the version is %s, it was %s", done, now, base)
			}
			if left := listing(t, dir); !alive && len(left) > 5 { // lock, three files, and a directory
				t.Errorf("cut off after step %d: the directory has %q", done, left)
			}
			r.commit(now, map[string]string{"shop.yaml": limits("shop", 7)})
		}
	}
}

func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	for _, journal := range []string{"", "{", `{"remove":["../x"]}`, `{"put":[{"part":"/etc/passwd","name":"x.yaml"}]}`, `[]`} {
		dir := t.TempDir()
		writeText(t, filepath.Join(dir, "sub/shop.yaml"), limits("shop", 1))
		writeText(t, filepath.Join(dir, "x"), "x")
		writeText(t, filepath.Join(dir, "sub", journalName), journal)
		_, err := open(t, filepath.Join(dir, "sub")).Fetch(t.Context())
		checkError(t, "Fetch with the journal "+journal, err, journalName, "remove it")
		text(t, filepath.Join(dir, "x"))
	}
}
