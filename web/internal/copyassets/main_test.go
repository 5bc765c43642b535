package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const script = "console.log(1)"

// folder returns a folder like web, with one package installed and listed.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "node_modules/lib.org/package.json", `{"name": "lib.org", "version": "4.0.1"}`)
	write(t, dir, "node_modules/lib.org/dist/lib.min.js", script)
	write(t, dir, "node_modules/lib.org/LICENSE", "do what you like")
	write(t, dir, "assets.json", manifest("4.0.1", fmt.Sprintf("%x", sha256.Sum256([]byte(script)))))
	write(t, dir, "dist/.gitignore", "*\n!.gitignore\n")
	return dir
}

func manifest(version, hash string) string {
	return fmt.Sprintf(`[{"name": "lib.org", "version": %q, "licence": "0BSD", "licence_path": "lib.org/LICENSE",
		"path": "lib.org/dist/lib.min.js", "sha256": %q}]`, version, hash)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestCopies(t *testing.T) {
	dir := folder(t)
	write(t, dir, "dist/lib.org-3.9.0-0000000000.js", "of an older version")
	for range 2 { // the second time changes nothing
		if err := run(dir); err != nil {
			t.Fatal(err)
		}
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte(script)))[:10]
		want := []string{".gitignore", "lib.org-4.0.1-LICENSE.txt", "lib.org-4.0.1-lib.min-" + hash + ".js"}
		slices.Sort(want)
		if got := names(t, filepath.Join(dir, "dist")); !slices.Equal(got, want) {
			t.Fatalf("dist holds %q, want %q", got, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(script)))
	tests := []struct {
		name, file, content string
		want                string // in the error
	}{
		{"a changed file", "node_modules/lib.org/dist/lib.min.js", "console.log(2)", "sha256 of lib.org/dist/lib.min.js is"},
		{"another version", "node_modules/lib.org/package.json", `{"version": "4.0.2"}`, "version 4.0.2 is installed, assets.json lists 4.0.1"},
		{"an unknown field", "assets.json", `[{"nam": "lib.org"}]`, `unknown field "nam"`},
		{"a package that is not installed", "assets.json", strings.ReplaceAll(manifest("4.0.1", hash), "lib.org", "other"), "other/package.json"},
		{"a missing licence", "assets.json", strings.Replace(manifest("4.0.1", hash), "org/LICENSE", "org/COPYING", 1), "licence: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t)
			write(t, dir, tt.file, tt.content)
			err := run(dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if got := names(t, filepath.Join(dir, "dist")); !slices.Equal(got, []string{".gitignore"}) {
				t.Errorf("dist holds %q after a refusal", got)
			}
		})
	}
}
