package main

import "testing"

func TestSplit(t *testing.T) {
	const head, tail = "# Law\n\n" + begin, end + "\nMore.\n"
	for _, text := range []string{head + tail, head + "\n| old |\n\n" + tail} {
		before, after, err := split(text)
		if err != nil || before != head || after != tail {
			t.Errorf("split(%q) = %q, %q, %v, want %q and %q", text, before, after, err, head, tail)
		}
	}
	for _, text := range []string{"", "# Law\n", head, tail, tail + head} {
		if before, after, err := split(text); err == nil {
			t.Errorf("split(%q) = %q, %q, want an error", text, before, after)
		}
	}
}

// TestRunWantsADocument changes nothing without one.
func TestRunWantsADocument(t *testing.T) {
	for _, args := range [][]string{nil, {"a.md", "b.md"}, {t.TempDir() + "/missing.md"}} {
		if err := run(args); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}
