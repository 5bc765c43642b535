package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentedImports compares the table of docs/architecture.md with the
// packages there are and what they may import.
func TestDocumentedImports(t *testing.T) {
	_, section, ok := strings.Cut(readDocument(t, "docs/architecture.md"), "\n## Who may import whom\n")
	if !ok {
		t.Fatal("docs/architecture.md has no table of imports")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(section, -1) {
		documented[row[1]] = strings.ReplaceAll(row[2], "`", "")
	}
	packages := importsOf(t)
	want := map[string]string{}
	for pkg := range packages {
		var allowed []string
		for _, dep := range mayImport[pkg] {
			if _, exists := packages[dep]; exists || dep == everything || dep == protoTree {
				allowed = append(allowed, dep) // the others are yet to be written
			}
		}
		slices.Sort(allowed)
		want[pkg] = strings.Join(allowed, ", ")
		if len(allowed) == 0 {
			want[pkg] = "nothing"
		}
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("docs/architecture.md differs from mayImport (-code +docs):\n%s", diff)
	}
}

// TestDocumentedLinks follows the links of the documents to files and headings
// of this repository.
func TestDocumentedLinks(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, names...)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, file := range files {
		for _, m := range link.FindAllStringSubmatch(readDocument(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(m[1], "#")
			to := filepath.Join(filepath.Dir(file), filepath.FromSlash(path))
			if path == "" {
				to = file
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if heading != "" && !slices.Contains(headings(readDocument(t, to)), heading) {
				t.Errorf("%s links to %s: no such heading", file, m[1])
			}
		}
	}
}

func readDocument(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// headings returns the names under which code hosts make headings reachable.
func headings(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}
