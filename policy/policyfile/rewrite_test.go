package policyfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRewrite(t *testing.T) {
	const file = `# of the night
name: nightly   # keep
kind: peak

match: {service: payments}  # all of them
floor: 10 # agreed
# what we know
events:
  # once a year
  - {name: "sale # 1", from: 2026-11-27, to: 2026-11-30, factor: 2.5}
  - {name: fair, from: 2026-12-27, to: 2026-12-30, factor: 2}
# last
history: 4w
`
	tests := []struct {
		name    string
		file    string
		changes []Key
		want    func(string) string
	}{
		{"nothing", file, nil, func(s string) string { return s }},
		{"a value with a comment behind it", file, []Key{{"floor", "20"}}, func(s string) string { return strings.Replace(s, "floor: 10 #", "floor: 20 #", 1) }},
		{"a mapping with a comment behind it", file, []Key{{"match", "{service: search}"}}, func(s string) string {
			return strings.Replace(s, "match: {service: payments}  #", "match: {service: search}  #", 1)
		}},
		{"a list goes with the comments in it", file, []Key{{"events", ""}}, func(s string) string {
			before, rest, _ := strings.Cut(s, "events:\n")
			_, rest, _ = strings.Cut(rest, "factor: 2}\n")
			return before + rest
		}},
		{"a list", file, []Key{{"events", "\n  - {name: fair, from: 2026-12-27, to: 2026-12-30, factor: 3}\n"}}, func(s string) string {
			before, rest, _ := strings.Cut(s, "events:\n")
			_, rest, _ = strings.Cut(rest, "factor: 2}\n")
			return before + "events:\n  - {name: fair, from: 2026-12-27, to: 2026-12-30, factor: 3}\n" + rest
		}},
		{"new ones", file, []Key{{"ceiling", "90"}, {"mode", "apply"}}, func(s string) string { return s + "ceiling: 90\nmode: apply\n" }},
		{"no line feed at the end", "name: a\nkind: peak", []Key{{"kind", "live"}}, func(string) string { return "name: a\nkind: live\n" }},
		{"line ends of another kind", "name: a # x\r\nkind: peak\r\n", []Key{{"name", "b"}, {"floor", "1"}}, func(string) string { return "name: b # x\r\nkind: peak\r\nfloor: 1\r\n" }},
		{"a hash that is no comment", "name: \"a # b\"\nkind: peak\n", []Key{{"name", "c"}}, func(string) string { return "name: c\nkind: peak\n" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Rewrite([]byte(tt.file), tt.changes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want(tt.file), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, changes := range map[string][]Key{
		"a value that is no YAML":      {{"floor", "[1"}},
		"a value with a key behind it": {{"floor", "10\nceiling: 5"}},
		"a name that is no key":        {{"floor: 1\nx", "10"}},
		"a name with a space behind":   {{"floor ", "10"}},
		"a name that is a comment":     {{"# floor", "10"}},
	} {
		if got, err := Rewrite([]byte(file), changes); err == nil {
			t.Errorf("%s: no error, but\n%s", name, got)
		}
	}
	if _, err := Rewrite([]byte("name: [a\n"), nil); err == nil {
		t.Error("a file that cannot be read: no error")
	}
}

// FuzzRewrite makes sure that what is not changed stays, whatever the file is.
func FuzzRewrite(f *testing.F) {
	f.Add("name: a # b\nkind: peak\nevents:\n  - {name: x}\n", "floor", "10 # c")
	f.Add("name: 'it''s' # '\nmatch: {service: \"a # b\"} # c\n", "match", "\n  service: b\n")
	f.Fuzz(func(t *testing.T, file, key, value string) {
		got, err := Rewrite([]byte(file), []Key{{key, value}})
		if err != nil {
			return
		}
		before, _ := topOf([]byte(file))
		after, err := topOf(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", file, got, err)
		}
		for name, n := range before {
			if name != key && !same(n, after[name]) {
				t.Fatalf("%q became %q: %s is another", file, got, name)
			}
		}
		if value != "" && after[key] == nil {
			t.Fatalf("%q became %q: no %s", file, got, key)
		}
	})
}
