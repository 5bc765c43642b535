package desktest

import (
	"fmt"
	"strings"

	"grl/limiter/limitsfile"
)

// large are files, and sets of them, that are too much, or that a careless
// reader takes long for.
func large() []Case {
	repeated := func(name, head, text string, times int) Case {
		return Case{Name: "large: " + name, Files: func() []limitsfile.Source {
			return []limitsfile.Source{{Name: "poison.yaml", Data: []byte(head + strings.Repeat(text, times))}}
		}}
	}
	cases := []Case{
		repeated("one line", "service: ", "a", 1<<20),
		repeated("many keys", "service: a\n", "a: 1\n", 1<<18),
		repeated("many items", "service: a\nexempt:\n", "- {caller: a}\n", 1<<18),
		repeated("many empty buckets", "service: a\nbuckets:\n", "- {}\n", 1<<19),
		repeated("one long list", "service: a\nroutes: [", "a,", 1<<20),
		repeated("wide bucket", "service: a\nbuckets:\n- name: b\n", "  a: 1\n", 1<<18),
		repeated("16 MB of letters", "", "a", 16<<20),
		repeated("16 MB of brackets", "", "[", 16<<20),
		repeated("16 MB of lines", "", "\n", 16<<20),
		repeated("16 MB of bad bytes", "", "\xff", 16<<20),
		repeated("stars", "service: a\nbuckets:\n- {name: b, limit: {rps: 1}, behavior: deny, match: {caller: \"", "*", 200),
	}
	whole := func(name string, files func() []limitsfile.Source) {
		cases = append(cases, Case{Name: "large: " + name, Whole: true, Files: files})
	}
	whole("over 16 MiB", func() []limitsfile.Source {
		return []limitsfile.Source{{Name: "poison.yaml", Data: []byte("service: a\n" + strings.Repeat("#\n", 8<<20))}}
	})
	whole("over 64 MiB in all", func() []limitsfile.Source {
		data := []byte("service: a\n" + strings.Repeat("#\n", 7<<20))
		return []limitsfile.Source{{Name: "a", Data: data}, {Name: "b", Data: data}, {Name: "c", Data: data}, {Name: "d", Data: data}, {Name: "e", Data: data}}
	})
	whole("no files", func() []limitsfile.Source { return nil })
	whole("a file without a name", func() []limitsfile.Source { return []limitsfile.Source{{Data: []byte("service: a\n")}} })
	whole("a file with a hostile name", func() []limitsfile.Source {
		return []limitsfile.Source{{Name: "a\x1b[31m.yaml", Data: []byte("service: a\n")}}
	})
	whole("a file with a long name", func() []limitsfile.Source {
		return []limitsfile.Source{{Name: strings.Repeat("a", 5000), Data: []byte("service: a\n")}}
	})
	return append(cases,
		Case{Name: "files: one of many is bad", Files: func() []limitsfile.Source {
			return append(Crowd(20), limitsfile.Source{Name: "poison.yaml", Data: []byte(inBucket("limit: {rps: 0}"))})
		}},
		pair("owners disagree", "owner: a\n", "owner: b\n"),
		pair("sides disagree", "enforce: inbound\n", "enforce: outbound\n"),
		pair("one bucket in two files", "buckets:\n  - {name: b, limit: {rps: 1}, behavior: deny}\n", "buckets:\n  - {name: b, limit: {rps: 2}, behavior: deny}\n"),
		pair("one match in two files", "buckets:\n  - {name: b, limit: {rps: 1}, behavior: deny}\n", "buckets:\n  - {name: c, limit: {rps: 2}, behavior: deny}\n"),
		pair("routes in conflict", "routes: [\"GET /{a}/b\"]\n", "routes: [\"GET /a/{b}\"]\n"),
	)
}

// pair is two files of one service.
func pair(name, a, b string) Case {
	return Case{Name: "files: " + name, Files: func() []limitsfile.Source {
		return []limitsfile.Source{
			{Name: "a.yaml", Data: []byte("service: poison\n" + a)},
			{Name: "b.yaml", Data: []byte("service: poison\n" + b)},
		}
	}}
}

// Crowd returns files that hold, of n buckets, a service and a file for each
// 1,000.
func Crowd(n int) []limitsfile.Source {
	var files []limitsfile.Source
	for first := 0; first < n; first += 1000 {
		var b strings.Builder
		fmt.Fprintf(&b, "service: s%d\nbuckets:\n", first)
		for i := first; i < min(n, first+1000); i++ {
			fmt.Fprintf(&b, "- {name: b%d, match: {caller: c%d}, limit: {rps: 1}, behavior: deny}\n", i, i)
		}
		files = append(files, limitsfile.Source{Name: fmt.Sprintf("s%d.yaml", first), Data: []byte(b.String())})
	}
	return files
}
