package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/policy"
)

// TestDocumentedWords compares the tables of words of docs/rlc.md with the lists of
// package policy, in their order.
func TestDocumentedWords(t *testing.T) {
	document := readDocument(t, "docs/rlc.md")
	for title, words := range map[string][]policy.Word{
		"Figures of a proposal": policy.Figures(), "What bounds a limit": policy.Rules(), "Refusals": policy.Refusals(),
	} {
		_, section, ok := strings.Cut(document, "\n## "+title+"\n")
		if !ok {
			t.Errorf("docs/rlc.md has no section %q", title)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var documented, want []string
		for _, m := range regexp.MustCompile("(?m)^\\| (`.*) \\|$").FindAllStringSubmatch(section, -1) {
			documented = append(documented, m[1])
		}
		for _, w := range words {
			want = append(want, "`"+w.Name+"` | "+w.Text)
		}
		if diff := cmp.Diff(want, documented); diff != "" {
			t.Errorf("%s of docs/rlc.md (-code +docs):\n%s", title, diff)
		}
	}
}
