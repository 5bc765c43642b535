package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentedImports compares the table of docs/architecture.md with the
// packages there are and what they may import.
func TestDocumentedImports(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Who may import whom\n")
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
