package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"grl/limiter/limitsfile"
)

// badName is café.yaml in Latin-1.
const badName = "caf\xe9.yaml"

func TestNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	const want = `"caf\xe9.yaml": the name is not UTF-8: rename the file` + "\n" + `"d\xff/a.yaml": the name is not UTF-8: rename the file`
	checkout, plain := alone(t), t.TempDir()
	edit(t, checkout, map[string]string{badName: limits("shop", 1), "d\xff/a.yaml": limits("a", 1), "x\xff.md": "not ours", "b.yaml": limits("b", 1)})
	for _, name := range []string{badName, "d\xff/a.yaml", "x\xff.md", "b.yaml"} {
		writeText(t, filepath.Join(plain, name), limits("shop", 1))
	}
	for kind, r := range map[string]rig{"git": open(t, checkout), "directory": open(t, plain)} {
		files, err := r.Files(t.Context(), r.fetch())
		if err == nil || err.Error() != want || files != nil {
			t.Errorf("%s: Files = %d files, %v; want\n%s", kind, len(files), err, want)
		}
	}
}

func TestErrorsOfManyFiles(t *testing.T) {
	t.Parallel()
	checkout, plain := alone(t), t.TempDir()
	edit(t, checkout, map[string]string{"shop.yaml": limits("shop", 1)})
	for _, dir := range []string{checkout, plain} {
		for i := range 300 {
			if err := os.Symlink("nowhere", filepath.Join(dir, fmt.Sprintf("%03d-\xff.yaml", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	person(t, checkout, "add", "--all")
	person(t, checkout, "commit", "--quiet", "--message", "links")
	git := open(t, checkout)
	_, ofGit := git.Files(t.Context(), git.fetch())
	_, ofDirectory := open(t, plain).Fetch(t.Context())
	for kind, err := range map[string]error{"git": ofGit, "directory": ofDirectory} {
		checkError(t, kind, err, `000-\xff.yaml"`, `019-\xff.yaml"`, "\nand 280 more")
		if text := fmt.Sprint(err); !utf8.ValidString(text) || strings.Count(text, "\n") != 20 {
			t.Errorf("%s: %q: want UTF-8 of 21 lines", kind, text)
		}
	}
}

func TestFirstErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files int
		lines int
	}{
		{"one", 1, 1},
		{"as many as are named", 20, 20},
		{"one more", 21, 21},
		{"many", 7000, 21},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var errs limitsfile.Errors
			for range tt.files {
				errs = append(errs, notUTF8(strings.Repeat("ü", 100_000)))
			}
			text := firstErrors(errs).Error()
			if lines := strings.Count(text, "\n") + 1; lines != tt.lines || len(text) > 10_000 || !utf8.ValidString(text) {
				t.Errorf("%d lines, %d bytes; want %d", lines, len(text), tt.lines)
			}
		})
	}
}
