package repository

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/limiter/limitsfile"
)

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
