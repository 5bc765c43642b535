package yamlfile_test

import (
	"strings"
	"testing"

	"grl/limiter/yamlfile"
)

// outline writes a tree in one line, with the place of each value.
func outline(n *yamlfile.Node) string {
	if n == nil {
		return "unread"
	}
	var parts []string
	switch n.Kind {
	case yamlfile.Mapping:
		for _, p := range n.Pairs {
			parts = append(parts, p.Key.Text+": "+outline(p.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yamlfile.List:
		for _, item := range n.Items {
			parts = append(parts, outline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return n.Describe()
	}
}

func TestReadFile(t *testing.T) {
	tests := []struct{ name, text, want, errs string }{
		{"keys", "a: 1\nb: {c: true, d: \"x\"}\n", `{a: 1, b: {c: true, d: "x" in quotes}}`, ""},
		{"a list in lines", "a:\n  - 1\n  - b: 2\n    c: 3\nd: 4\n", "{a: [1, {b: 2, c: 3}], d: 4}", ""},
		{"a list at the margin", "a:\n- 1\n- 2\n", "{a: [1, 2]}", ""},
		{"a list in brackets", "a: [1, 2]\n", "{a: [1, 2]}", ""},
		{"nothing behind a key", "a:\nb: 1\n", "{a: nothing, b: 1}", ""},
		{"a marker, comments and blank lines", "---\n# x\n\na: 1 # y\n", "{a: 1}", ""},
		{"an empty file", "", "{}", ""},
		{"lines that end as in DOS", "a: 1\r\nb:\r\n- 2\r\n", "{a: 1, b: [2]}", ""},
		{
			"what cannot be read leaves the rest", "a: {b\nc: 2\n", "{a: unread, c: 2}",
			"x.yaml:1:5: not YAML: could not find flow map content",
		},
		{
			"items below what cannot be read", "a: {b\n- 1\nc: 2\n", "{a: unread, c: 2}",
			"x.yaml:1:5: not YAML: could not find flow map content\n" +
				`x.yaml:2:1: found a list, expected keys at the start of the line, such as "k: v"`,
		},
		{
			"an item that cannot be read", "a:\n- [1\n- 2\n", "{a: [2]}",
			"x.yaml:2:3: not YAML: sequence end token ']' not found",
		},
		{"brackets at the margin", "{a: 1}\n", "{}", `x.yaml:1:1: found a value in brackets, expected keys at the start of the line, such as "k: v"`},
		{"a list at the top", "- 1\n- 2\n", "{}", `x.yaml:1:1: found a list, expected keys at the start of the line, such as "k: v"`},
		{"a word", "hello\n", "{}", `x.yaml:1:1: found "hello", expected keys with values, such as "k: v"`},
		{"too much", strings.Repeat("#", 101), "{}", "x.yaml: found 0.1 KiB, expected at most 0.1 KiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := yamlfile.Decoder{File: "x.yaml"}
			n := d.ReadFile([]byte(tt.text), 100, "k: v")
			if got := outline(n); got != tt.want {
				t.Errorf("ReadFile(%q) = %s, want %s", tt.text, got, tt.want)
			}
			if got := d.Errs.Error(); got != tt.errs {
				t.Errorf("ReadFile(%q): errors\n%s\nwant\n%s", tt.text, got, tt.errs)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	d := yamlfile.Decoder{File: "x.yaml"}
	n := d.ReadFile([]byte("name: a\nname: b\nnmae: c\n5: d\nlimit: {x\n"), 100, "k: v")
	before := len(d.Errs)
	var names []string
	seen := map[string]yamlfile.Place{}
	d.Keys(n, "", seen, yamlfile.Fields{
		"name":  func(v *yamlfile.Node, path string) { names = append(names, path+"="+v.Text) },
		"limit": func(*yamlfile.Node, string) { t.Error("a value that could not be read was handed out") },
	})
	if len(names) != 1 || names[0] != "name=a" || seen["limit"].Line != 5 {
		t.Errorf("handed out %v, seen %v", names, seen)
	}
	const want = "x.yaml:2:1: name: given twice: first on line 1, column 1\n" +
		"x.yaml:3:1: unknown key: found \"nmae\", expected \"name\", or one of limit, name\n" +
		"x.yaml:4:1: unknown key: found 5, expected one of limit, name"
	if got := d.Errs[before:].Error(); got != want {
		t.Errorf("errors\n%s\nwant\n%s", got, want)
	}
}

func TestHasKey(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: a\n": true, "a: 1\nkind:\n- 2\n": true, "kinds: a\n": false, "a:\n  kind: b\n": false, "kind\n": false, "": false, "kind: {a\n": true,
	} {
		if got := yamlfile.HasKey([]byte(text), "kind"); got != want {
			t.Errorf("HasKey(%q) = %v, want %v", text, got, want)
		}
	}
}
