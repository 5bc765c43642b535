package web

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Templates print; they have no markup of their own making, nothing inline and
// nothing from elsewhere.
func TestTemplates(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"unescaped text":              regexp.MustCompile(`templ\.Raw|@templ\.(Raw|FromGoHTML)|templ\.(JSFuncCall|JSExpression|JSONScript|JSONString|SafeScript|SafeCSS)\b`),
		"an inline style":             regexp.MustCompile(`\sstyle\??=|<style|^\s*css\s+\w+\(`),
		"an inline handler":           regexp.MustCompile(`\son[a-z]+\??=|hx-on`),
		"an inline script":            regexp.MustCompile(`<script(\s+defer)?\s*>|^\s*script\s+\w+\(|hx-vals=["{]\s*js:|javascript:`),
		"something from another site": regexp.MustCompile(`(src|href|action)=["']?(https?:)?//`),
	}
	found := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".templ") {
			return nil
		}
		found++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			for what, pattern := range forbidden {
				if m := pattern.FindString(line); m != "" {
					t.Errorf("%s:%d: %s: %q", path, i+1, what, m)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("%d templates were read, want those of all pages", found)
	}
}
