package policyfile_test

import (
	"fmt"
	"strings"
	"testing"

	"grl/policy/policyfile"
)

// TestDocumentedExamples checks that the policies of docs/policies.md hold, together.
func TestDocumentedExamples(t *testing.T) {
	var sources []policyfile.Source
	rest := string(read(t, "../../docs/policies.md"))
	for {
		_, after, found := strings.Cut(rest, "```yaml\n")
		if !found {
			break
		}
		var text string
		text, rest, _ = strings.Cut(after, "```\n")
		sources = append(sources, policyfile.Source{Name: fmt.Sprintf("example %d", len(sources)+1), Data: []byte(text)})
	}
	if specs, err := policyfile.Load(sources); err != nil || len(specs) < 2 {
		t.Errorf("%d policies of docs/policies.md: %v", len(specs), err)
	}
}

// TestDocumentedKeys checks that the table of docs/policies.md has all keys.
func TestDocumentedKeys(t *testing.T) {
	_, err := policyfile.Parse("a.yaml", []byte("a: b\n"))
	_, keys, found := strings.Cut(err.Error(), "expected one of ")
	if !found {
		t.Fatal(err)
	}
	keys, _, _ = strings.Cut(keys, "\n")
	document := string(read(t, "../../docs/policies.md"))
	for key := range strings.SplitSeq(keys, ", ") {
		if !strings.Contains(document, "| `"+key+"` |") && !strings.Contains(document, "| `"+key+"`, ") && !strings.Contains(document, ", `"+key+"` |") {
			t.Errorf("docs/policies.md lacks the key %s", key)
		}
	}
}
