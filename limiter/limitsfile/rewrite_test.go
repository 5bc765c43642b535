package limitsfile_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/limiter/yamlfile"
)

// hand is how a person writes limits.
const hand = `# Payments.
service: payments
owner: 'team-payments'   # pager: 7

buckets:
  # Checkout is what pays.
  - name: checkout         # do not lower
    match: {caller: checkout, procedure: "pay.v1.Charges/*"}
    limit: {rps: 1.2e3}    # of March
    behavior: deny

  # Each region.
  - match:
      procedure: pay.v1.Refunds/Create
    name: refunds
    scope: region
    limit:
      rps: 500
      # by contract
      regions:
        eu: 400   # Frankfurt
        us: 300
    behavior: deny

  - {name: rest, limit: {rps: 20000}, behavior: allow}
  # the end

exempt:
  - {caller: healthcheck}
`

func edit(t testing.TB, text string, change func(*limiter.Service)) limiter.Service {
	t.Helper()
	s := load(t, limitsfile.Source{Name: "a.yaml", Data: []byte(text)})[0]
	change(&s)
	return s
}

func bucketOf(s *limiter.Service, name string) *limiter.Bucket {
	i := slices.IndexFunc(s.Buckets, func(b limiter.Bucket) bool { return b.Name == name })
	return &s.Buckets[i]
}

func TestRewrite(t *testing.T) {
	hours := make([]float64, limiter.Hours)
	for i := range hours {
		hours[i] = float64(i + 1)
	}
	fast := limiter.Bucket{Name: "new", Match: limiter.Match{Caller: "x"}, LimitRPS: 5, Behavior: limiter.Deny}
	tests := []struct {
		name     string
		change   func(*limiter.Service)
		from, to []string // pairs of lines: each of from gives way to that of to
	}{
		{"nothing", func(*limiter.Service) {}, nil, nil},
		{
			"a number in brackets", func(s *limiter.Service) { bucketOf(s, "checkout").LimitRPS = 1300 },
			[]string{"limit: {rps: 1.2e3}    # of March"},
			[]string{"limit: {rps: 1300}    # of March"},
		},
		{
			"numbers on lines", func(s *limiter.Service) {
				b := bucketOf(s, "refunds")
				b.LimitRPS, b.Regions = 500.5, map[string]float64{"eu": 450, "us": 300}
			},
			[]string{"      rps: 500\n", "eu: 400   # Frankfurt"},
			[]string{"      rps: 500.5\n", "eu: 450   # Frankfurt"},
		},
		{
			"a candidate", func(s *limiter.Service) { bucketOf(s, "checkout").CandidateRPS = 900 },
			[]string{"# of March\n"},
			[]string{"# of March\n    candidate: {rps: 900}\n"},
		},
		{
			"a region more", func(s *limiter.Service) {
				bucketOf(s, "refunds").Regions = map[string]float64{"eu": 400, "us": 300, "1": 2}
			},
			[]string{"        us: 300\n"},
			[]string{"        us: 300\n        \"1\": 2\n"},
		},
		{
			"a region less", func(s *limiter.Service) { bucketOf(s, "refunds").Regions = map[string]float64{"us": 300} },
			[]string{"        eu: 400   # Frankfurt\n"},
			[]string{""},
		},
		{
			"hours", func(s *limiter.Service) {
				b := bucketOf(s, "checkout")
				b.Hourly, b.TimeZone = hours, "Europe/Berlin"
			},
			[]string{"{rps: 1.2e3}"},
			[]string{`{rps: 1.2e3, hourly: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24], time_zone: "Europe/Berlin"}`},
		},
		{
			"no match behind the dash", func(s *limiter.Service) { bucketOf(s, "refunds").Match = limiter.Match{} },
			[]string{"  - match:\n      procedure: pay.v1.Refunds/Create\n    name: refunds\n"},
			[]string{"  - name: refunds\n"},
		},
		{
			"a word in brackets", func(s *limiter.Service) { bucketOf(s, "rest").Behavior = limiter.Deny },
			[]string{"behavior: allow}"},
			[]string{"behavior: deny}"},
		},
		{
			"keys in brackets", func(s *limiter.Service) {
				b := bucketOf(s, "rest")
				b.PerCaller, b.Verified = true, true
			},
			[]string{"{name: rest, limit: {rps: 20000}, behavior: allow}"},
			[]string{"{name: rest, per: caller, limit: {rps: 20000}, behavior: allow, identity: verified}"},
		},
		{
			"a block instead of a limit", func(s *limiter.Service) {
				b := bucketOf(s, "checkout")
				b.Block, b.LimitRPS = true, 0
			},
			[]string{"    limit: {rps: 1.2e3}    # of March\n"},
			[]string{"    block: true\n"},
		},
		{
			"a bucket goes with its comment", func(s *limiter.Service) { s.Buckets = s.Buckets[1:] },
			[]string{hand[strings.Index(hand, "  # Checkout"):strings.Index(hand, "\n  # Each region")]},
			[]string{""},
		},
		{
			"a bucket in brackets goes", func(s *limiter.Service) { s.Buckets = s.Buckets[:2] },
			[]string{"  - {name: rest, limit: {rps: 20000}, behavior: allow}\n"},
			[]string{""},
		},
		{
			"a bucket comes", func(s *limiter.Service) { s.Buckets = append(s.Buckets, fast) },
			[]string{"behavior: allow}\n"},
			[]string{"behavior: allow}\n\n  - name: new\n    match: {caller: x}\n    limit: {rps: 5}\n    behavior: deny\n"},
		},
		{
			"another owner, and nobody exempt", func(s *limiter.Service) { s.Owner, s.Exempt = "team-7", nil },
			[]string{"'team-payments'", "exempt:\n  - {caller: healthcheck}\n"},
			[]string{`team-7`, ""},
		},
		{
			"more of the service", func(s *limiter.Service) {
				s.Enforce, s.Routes, s.Exempt = limiter.Outbound, []string{"GET /a", "GET /b"}, append(s.Exempt, limiter.Match{Caller: "a"})
			},
			[]string{"service: payments\n", "  - {caller: healthcheck}\n"},
			[]string{"service: payments\nenforce: outbound\nroutes:\n  - \"GET /a\"\n  - \"GET /b\"\n", "  - {caller: healthcheck}\n  - {caller: a}\n"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				text, want := strings.ReplaceAll(hand, "\n", eol), hand
				for i, from := range tt.from {
					if strings.Count(want, from) != 1 {
						t.Fatalf("%q is there %d times", from, strings.Count(want, from))
					}
					want = strings.Replace(want, from, tt.to[i], 1)
				}
				want = strings.ReplaceAll(want, "\n", eol)
				changed, err := limitsfile.Rewrite([]limitsfile.Source{{Name: "a.yaml", Data: []byte(text)}}, edit(t, hand, tt.change))
				if err != nil {
					t.Fatal(err)
				}
				got := text
				if len(changed) > 0 {
					got = string(changed[0].Data)
				}
				if got != want {
					t.Errorf("line ends %q: got\n%s\nwant\n%s", eol, got, want)
				}
			}
		})
	}
}

func TestRewriteOfOtherShapes(t *testing.T) {
	deny := func(name, caller string, rps float64) limiter.Bucket {
		return limiter.Bucket{Name: name, Match: limiter.Match{Caller: limiter.Pattern(caller)}, LimitRPS: rps, Behavior: limiter.Deny}
	}
	one, two := deny("one", "x", 1), deny("two", "w", 2)
	const head = "service: a\n"
	tests := []struct {
		name  string
		files []string // a.yaml, b.yaml …
		want  limiter.Service
		out   map[string]string // changed files
	}{
		{"no file", nil, limiter.Service{Name: "a", Buckets: []limiter.Bucket{one}}, map[string]string{
			"a-2.yaml": "",
			"a.yaml":   head + "buckets:\n  - name: one\n    match: {caller: x}\n    limit: {rps: 1}\n    behavior: deny\n",
		}},
		{"the name is taken", []string{"service: other\n"}, limiter.Service{Name: "a"}, map[string]string{"a-2.yaml": head}},
		{"no buckets", []string{head}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{one}}, map[string]string{
			"a.yaml": head + "buckets:\n  - name: one\n    match: {caller: x}\n    limit: {rps: 1}\n    behavior: deny\n",
		}},
		{"no buckets, and no end of line", []string{"service: a"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{one}}, map[string]string{
			"a.yaml": head + "buckets:\n  - name: one\n    match: {caller: x}\n    limit: {rps: 1}\n    behavior: deny",
		}},
		{"an empty list", []string{head + "buckets: [] # none\n"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{one}}, map[string]string{
			"a.yaml": head + "buckets: # none\n  - name: one\n    match: {caller: x}\n    limit: {rps: 1}\n    behavior: deny\n",
		}},
		{"the last bucket", []string{head + "buckets: # some\n- {name: one, limit: {rps: 1}, behavior: deny}"}, limiter.Service{Name: "a"}, map[string]string{
			"a.yaml": head + "buckets: [] # some\n",
		}},
		{"one for another", []string{head + "buckets:\n- {name: one, limit: {rps: 1}, behavior: deny}\nowner: b\n"}, limiter.Service{Name: "a", Owner: "b", Buckets: []limiter.Bucket{two}}, map[string]string{
			"a.yaml": head + "buckets:\n- name: two\n  match: {caller: w}\n  limit: {rps: 2}\n  behavior: deny\nowner: b\n",
		}},
		{"all in brackets", []string{head + "buckets: [{name: one, match: {caller: x}, limit: {rps: 1}, behavior: deny}]\n"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{one, two}}, map[string]string{
			"a.yaml": head + "buckets: [{name: one, match: {caller: x}, limit: {rps: 1}, behavior: deny}, {name: two, match: {caller: w}, limit: {rps: 2}, behavior: deny}]\n",
		}},
		{"several files", []string{
			head + "owner: b\nbuckets:\n  - {name: one, match: {caller: x}, limit: {rps: 5}, behavior: deny}\n",
			head + "buckets:\n  - {name: three, match: {caller: z}, limit: {rps: 3}, behavior: deny}\n  - {name: four, limit: {rps: 3}, behavior: deny}\n",
			"service: c\n",
		}, limiter.Service{Name: "a", Owner: "c", Buckets: []limiter.Bucket{one, two, deny("four", "", 3)}}, map[string]string{
			"a.yaml": head + "owner: c\nbuckets:\n  - {name: one, match: {caller: x}, limit: {rps: 1}, behavior: deny}\n",
			"b.yaml": head + "buckets:\n  - {name: four, limit: {rps: 3}, behavior: deny}\n  - name: two\n    match: {caller: w}\n    limit: {rps: 2}\n    behavior: deny\n",
		}},
		{"said in other words", []string{head + "buckets:\n  - {name: four, limit: {rps: 3}, behavior: deny, cost: {metadata: x}, scope: global}\n"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{
			{Name: "four", LimitRPS: 3, Behavior: limiter.Deny, Scope: limiter.Zone, Cost: limiter.Cost{Header: "w"}},
		}}, map[string]string{
			"a.yaml": head + "buckets:\n  - {name: four, limit: {rps: 3}, behavior: deny, cost: {header: w}, scope: zone}\n",
		}},
		{"tiers", []string{head + "buckets:\n  - name: four\n    limit: {rps: 3}\n    behavior: deny\n    tiers:\n      - {name: p, callers: [c, b]} # first\n      - name: q # second\n        callers: [\"a*\"]\n      - {name: r}\n"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{
			{Name: "four", LimitRPS: 3, Behavior: limiter.Deny, Tiers: []limiter.Tier{{Name: "p", Callers: []limiter.Pattern{"c", "d"}}, {Name: "s", Callers: []limiter.Pattern{"e"}}, {Name: "r"}}},
		}}, map[string]string{
			"a.yaml": head + "buckets:\n  - name: four\n    limit: {rps: 3}\n    behavior: deny\n    tiers:\n      - {name: p, callers: [c, d]} # first\n      - {name: s, callers: [e]}\n      - {name: r}\n",
		}},
		{"a comment behind the dash", []string{head + "buckets:\n  - match: {caller: w} # who\n    # what\n    name: two\n    limit: {rps: 2}\n    behavior: deny\n"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{deny("two", "", 2)}}, map[string]string{
			"a.yaml": head + "buckets:\n  - # who\n    # what\n    name: two\n    limit: {rps: 2}\n    behavior: deny\n",
		}},
		{"no hours any more", []string{head + "buckets:\n  - name: two\n    match: {caller: w}\n    limit: {rps: 2, time_zone: UTC, hourly: [" + strings.Repeat("1, ", 23) + "1]}\n    behavior: deny\n"}, limiter.Service{Name: "a", Buckets: []limiter.Bucket{two}}, map[string]string{
			"a.yaml": head + "buckets:\n  - name: two\n    match: {caller: w}\n    limit: {rps: 2}\n    behavior: deny\n",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var files []limitsfile.Source
			for i, text := range tt.files {
				files = append(files, limitsfile.Source{Name: string(rune('a'+i)) + ".yaml", Data: []byte(text)})
			}
			changed, err := limitsfile.Rewrite(files, tt.want)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, c := range changed {
				got[c.Name] = string(c.Data)
			}
			maps.DeleteFunc(tt.out, func(_, text string) bool { return text == "" })
			if !maps.Equal(got, tt.out) {
				t.Errorf("got\n%q\nwant\n%q", got, tt.out)
			}
		})
	}
}

func TestRewriteRefuses(t *testing.T) {
	file := func(text string) []limitsfile.Source {
		return []limitsfile.Source{{Name: "a.yaml", Data: []byte(text)}}
	}
	for _, tt := range []struct {
		name  string
		files []limitsfile.Source
		want  limiter.Service
		text  string // of the error
	}{
		{"files that do not hold", file("service: a\nx: y\n"), limiter.Service{Name: "a"}, `rewrite limits of "a": a.yaml:2:1: unknown key`},
		{"a service that does not hold", file("service: a\n"), limiter.Service{Name: "a", Buckets: []limiter.Bucket{{Name: "b"}}}, `rewrite limits of "a": a:`},
		{"a name that is none", nil, limiter.Service{Name: "../a"}, `rewrite limits of "../a"`},
		{"a limit that is none", file("service: a\n"), limiter.Service{Name: "a", Buckets: []limiter.Bucket{{Name: "b", LimitRPS: math.NaN(), Behavior: limiter.Deny}}}, "rps"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed, err := limitsfile.Rewrite(tt.files, tt.want)
			if err == nil || !strings.Contains(err.Error(), tt.text) || changed != nil {
				t.Errorf("Rewrite = %v, %v; want an error with %q", changed, err, tt.text)
			}
		})
	}
}

// stylist writes services as people might.
type stylist struct {
	t        *rapid.T
	comments int
}

func (s *stylist) one(n int, label string) bool { return rapid.IntRange(1, n).Draw(s.t, label) == 1 }

// file writes what a service says in one file.
func (s *stylist) file(service limiter.Service) []byte {
	var d yamlfile.Decoder
	root := d.ReadFile(limitsfile.Normalize(service), limitsfile.MaxFileBytes, "service: a")
	var lines []string
	for _, p := range root.Pairs {
		lines = append(lines, s.above("")...)
		if p.Value.Kind != yamlfile.List || s.one(9, "list in brackets") {
			lines = append(lines, p.Key.Text+": "+s.flow(p.Value)+s.behind())
			continue
		}
		lines = append(lines, p.Key.Text+":"+s.behind())
		lines = append(lines, s.items(p.Value, rapid.SampledFrom([]string{"", "  ", "    "}).Draw(s.t, "indentation"))...)
	}
	lines = append(lines, s.above("")...)
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(s.t, "end of line")
	text := strings.Join(lines, eol)
	if !s.one(4, "no end of line") {
		text += eol
	}
	return []byte(text)
}

// above are lines before a value.
func (s *stylist) above(indent string) (lines []string) {
	if s.one(9, "blank") {
		lines = append(lines, "")
	}
	if s.one(6, "comment above") {
		lines = append(lines, indent+s.comment())
	}
	return lines
}

func (s *stylist) behind() string {
	if s.one(6, "comment behind") {
		return "  " + s.comment()
	}
	return ""
}

func (s *stylist) comment() string {
	s.comments++
	return fmt.Sprintf("# c%d {, [- x: \"", s.comments)
}

func (s *stylist) items(n *yamlfile.Node, indent string) (lines []string) {
	for _, item := range n.Items {
		lines = append(lines, s.above(indent)...)
		if item.Kind != yamlfile.Mapping || s.one(4, "item in brackets") {
			lines = append(lines, indent+"- "+s.flow(item)+s.behind())
			continue
		}
		pairs := s.pairs(item, indent+"  ", false)
		lines = append(lines, indent+"- "+strings.TrimLeft(pairs[0], " "))
		lines = append(lines, pairs[1:]...)
	}
	return lines
}

// pairs writes the pairs of a mapping on lines of their own.
func (s *stylist) pairs(n *yamlfile.Node, indent string, above bool) (lines []string) {
	for _, p := range rapid.Permutation(n.Pairs).Draw(s.t, "order") {
		if above {
			lines = append(lines, s.above(indent)...)
		}
		above = true
		key := indent + s.scalar(p.Key) + ":"
		inBrackets := p.Value.Kind != yamlfile.Mapping && p.Value.Kind != yamlfile.List || s.one(2, "in brackets")
		switch {
		case inBrackets:
			lines = append(lines, key+" "+s.flow(p.Value)+s.behind())
		case p.Value.Kind == yamlfile.List:
			lines = append(lines, key+s.behind())
			lines = append(lines, s.items(p.Value, indent+rapid.SampledFrom([]string{"", "  "}).Draw(s.t, "dash"))...)
		default:
			lines = append(lines, key+s.behind())
			lines = append(lines, s.pairs(p.Value, indent+"  ", true)...)
		}
	}
	return lines
}

func (s *stylist) flow(n *yamlfile.Node) string {
	var parts []string
	for _, p := range n.Pairs {
		parts = append(parts, s.scalar(p.Key)+": "+s.flow(p.Value))
	}
	for _, item := range n.Items {
		parts = append(parts, s.flow(item))
	}
	separator := rapid.SampledFrom([]string{", ", ", ", ",  ", " , "}).Draw(s.t, "separator")
	switch inner := strings.Join(parts, separator); n.Kind {
	case yamlfile.Mapping:
		return rapid.SampledFrom([]string{"{" + inner + "}", "{ " + inner + " }"}).Draw(s.t, "braces")
	case yamlfile.List:
		return "[" + inner + "]"
	default:
		return s.scalar(n)
	}
}

func (s *stylist) scalar(n *yamlfile.Node) string {
	switch {
	case n.Kind == yamlfile.Number || n.Kind == yamlfile.Bool:
		return n.Text
	case n.Kind == yamlfile.Plain && s.one(2, "plain"):
		return n.Text
	case !strings.Contains(n.Text, "'") && s.one(3, "single quotes"):
		return "'" + n.Text + "'"
	default:
		return `"` + n.Text + `"`
	}
}

// files writes a service as one to three files, and another service beside it.
func (s *stylist) files(service limiter.Service) []limitsfile.Source {
	parts := make([]limiter.Service, rapid.IntRange(1, 3).Draw(s.t, "files"))
	for i := range parts {
		parts[i].Name = service.Name
		if i == 0 || s.one(3, "says it too") {
			parts[i].Owner, parts[i].Enforce = service.Owner, service.Enforce
		}
	}
	if service.Enforce != limiter.Inbound {
		for i := range parts {
			parts[i].Enforce = service.Enforce
		}
	}
	some := func() *limiter.Service { return &parts[rapid.IntRange(0, len(parts)-1).Draw(s.t, "file")] }
	parts[0].Routes = service.Routes
	for _, m := range service.Exempt {
		p := some()
		p.Exempt = append(p.Exempt, m)
	}
	for _, b := range service.Buckets {
		p := some()
		p.Buckets = append(p.Buckets, b)
	}
	files := []limitsfile.Source{{Name: "other.yaml", Data: []byte("service: other" + strings.Repeat("0", 30) + "\n")}}
	for i, p := range parts {
		files = append(files, limitsfile.Source{Name: fmt.Sprintf("%d.yaml", i), Data: s.file(p)})
	}
	return files
}

// place puts changed files in their places.
func place(files, changed []limitsfile.Source) []limitsfile.Source {
	out := slices.Clone(files)
	for _, c := range changed {
		i := slices.IndexFunc(out, func(s limitsfile.Source) bool { return s.Name == c.Name })
		if i < 0 {
			out = append(out, c)
		} else {
			out[i] = c
		}
	}
	return out
}

// nudge changes numbers of a service, and nothing else.
func nudge(t *rapid.T, s limiter.Service) limiter.Service {
	s.Buckets = slices.Clone(s.Buckets)
	for i := range s.Buckets {
		b := &s.Buckets[i]
		if b.Block || rapid.Bool().Draw(t, "stays") {
			continue
		}
		if b.Hourly == nil {
			b.LimitRPS = drawRPS(t)
		}
		if b.CandidateRPS != 0 {
			b.CandidateRPS = drawRPS(t)
		}
		b.Regions = maps.Clone(b.Regions)
		for _, region := range slices.Sorted(maps.Keys(b.Regions)) {
			if b.RegionHourly[region] == nil {
				b.Regions[region] = drawRPS(t)
			}
		}
		if b.Hourly != nil {
			b.Hourly = slices.Clone(b.Hourly)
			b.Hourly[rapid.IntRange(0, 23).Draw(t, "hour")] = b.LimitRPS
		}
	}
	return s
}

// TestRewriteOfNumbers draws services and how they are written, changes numbers
// and changes them back.
func TestRewriteOfNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := drawService(t)
		files := (&stylist{t: t}).files(service)
		if _, err := limitsfile.Load(files); err != nil {
			t.Fatalf("Load = %v\n%s", err, files[1].Data)
		}
		want := nudge(t, service)
		changed, err := limitsfile.Rewrite(files, want)
		if err != nil {
			t.Fatalf("Rewrite = %v\n%s", err, files[1].Data)
		}
		for _, c := range changed {
			i := slices.IndexFunc(files, func(s limitsfile.Source) bool { return s.Name == c.Name })
			if before, after := bytes.Count(files[i].Data, []byte("\n")), bytes.Count(c.Data, []byte("\n")); before != after {
				t.Fatalf("%d lines, of %d\n%s\nthen\n%s", after, before, files[i].Data, c.Data)
			}
		}
		back, err := limitsfile.Rewrite(place(files, changed), service)
		if err != nil {
			t.Fatalf("Rewrite back = %v", err)
		}
		for i, f := range place(place(files, changed), back) {
			if !bytes.Equal(f.Data, files[i].Data) {
				t.Fatalf("there and back:\n%s\nwant\n%s", f.Data, files[i].Data)
			}
		}
	})
}

// TestRewriteToAnother draws two services of one name: whatever they have in
// common stays as it was written.
func TestRewriteToAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service, want := drawService(t), drawService(t)
		want.Name = service.Name
		for i := range want.Buckets {
			want.Buckets[i].Service = want.Name
		}
		// Some buckets stay, and some change in what they say besides their name.
		var mixed []limiter.Bucket
		taken := map[string]bool{}
		header := func(b limiter.Bucket) limiter.Bucket { b.Cost = limiter.Cost{}; return b }
		for i, b := range service.Buckets {
			switch {
			case rapid.Bool().Draw(t, "bucket stays"):
				mixed = append(mixed, b)
			case i < len(want.Buckets) && rapid.Bool().Draw(t, "bucket changes"):
				other := header(want.Buckets[i])
				other.Name, other.Match = b.Name, b.Match
				if other.Weights != nil {
					other.Weights = nil
				}
				mixed = append(mixed, other)
			default:
				continue
			}
			taken[b.Name], taken[string(b.Match.Caller)] = true, true
		}
		for _, b := range want.Buckets {
			if !taken[b.Name] && !taken[string(b.Match.Caller)] {
				mixed = append(mixed, header(b))
			}
		}
		want.Buckets = mixed
		if _, err := limitsfile.Load([]limitsfile.Source{{Name: "w", Data: limitsfile.Normalize(want)}}); err != nil {
			return // two headers of tiers, say
		}
		files := (&stylist{t: t}).files(service)
		changed, err := limitsfile.Rewrite(files, want)
		if err != nil {
			t.Fatalf("Rewrite = %v\n%s\nto\n%s", err, files[1].Data, limitsfile.Normalize(want))
		}
		checkRewritten(t, files, changed, service, want)
	})
}

func checkRewritten(t *rapid.T, files, changed []limitsfile.Source, service, want limiter.Service) {
	after := place(files, changed)
	services, err := limitsfile.Load(after)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(services, func(s limiter.Service) bool { return s.Name == want.Name })
	if got, wanted := limitsfile.Normalize(services[i]), limitsfile.Normalize(want); !bytes.Equal(got, wanted) {
		t.Fatalf("got\n%s\nwant\n%s", got, wanted)
	}
	for _, c := range changed {
		if len(files) != len(after) {
			t.Fatalf("%s is a new file", c.Name)
		}
	}
	// The lines of a bucket that stays are there, one after another.
	for _, b := range want.Buckets {
		was := slices.IndexFunc(service.Buckets, func(x limiter.Bucket) bool { return x.Name == b.Name })
		if was < 0 || !equalBuckets(service.Buckets[was], b) {
			continue
		}
		found := false
		for i := range files {
			lines := linesOf(t, files[i], b.Name)
			inBrackets := bytes.Contains(files[i].Data, []byte("\nbuckets: ["))
			found = found || inBrackets || lines != "" && strings.Contains(string(after[i].Data), lines)
		}
		if !found {
			t.Fatalf("the lines of %s have changed:\n%s\nthen\n%s", b.Name, files[1].Data, after[1].Data)
		}
	}
	if again, err := limitsfile.Rewrite(after, want); err != nil || len(again) > 0 {
		t.Fatalf("Rewrite of what is written: %d files, %v", len(again), err)
	}
}

func equalBuckets(a, b limiter.Bucket) bool {
	one := func(b limiter.Bucket) []byte {
		return limitsfile.Normalize(limiter.Service{Name: "s", Buckets: []limiter.Bucket{b}})
	}
	return bytes.Equal(one(a), one(b))
}

// linesOf returns the lines of a bucket; "" if the file has it not, or has its
// buckets in brackets.
func linesOf(t *rapid.T, file limitsfile.Source, name string) string {
	for p := range yamlfile.Pieces(file.Data, "service: a") {
		if p.Kind != yamlfile.ItemPiece {
			continue
		}
		n, bad := p.Parse()
		if bad != nil {
			t.Fatal(bad)
		}
		for _, pair := range n.Items[0].Pairs {
			if pair.Key.Text == "name" && pair.Value.Text == name {
				text := strings.TrimRight(p.Text, "\n")
				if bytes.Contains(file.Data, []byte("\r\n")) {
					text = strings.ReplaceAll(text, "\n", "\r\n")
				}
				return text
			}
		}
	}
	return ""
}

func BenchmarkRewrite(b *testing.B) {
	var text strings.Builder
	text.WriteString("service: pay\nbuckets:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "  - name: b%d # a bucket\n    match: {caller: c%d}\n    limit: {rps: 1200}\n    behavior: deny\n\n", i, i)
	}
	files := []limitsfile.Source{{Name: "a.yaml", Data: []byte(text.String())}}
	for i := range 1000 {
		files = append(files, limitsfile.Source{Name: fmt.Sprintf("o%d.yaml", i), Data: []byte(strings.ReplaceAll(text.String(), "pay", fmt.Sprint("other", i)))})
	}
	want := edit(b, text.String(), func(s *limiter.Service) { bucketOf(s, "b7").LimitRPS = 5 })
	for b.Loop() {
		if _, err := limitsfile.Rewrite(files, want); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzRewrite checks that whatever holds can be rewritten to say what another
// text says, or is refused, and never wrongly.
func FuzzRewrite(f *testing.F) {
	full := read(f, "testdata/good/full.yaml")
	for _, name := range []string{"forms", "hourly", "share"} {
		good := read(f, "testdata/good/"+name+".yaml")
		f.Add(good, full)
		f.Add(full, good)
	}
	f.Add([]byte(hand), []byte(strings.ReplaceAll(hand, "500", "700")))
	f.Add([]byte(hand), []byte("service: payments\nbuckets:\n- {name: rest, limit: {rps: 5}, behavior: deny}\n"))
	f.Add([]byte("service: a\nbuckets: []\n"), []byte("service: a\nexempt: [{caller: a}]\nbuckets:\n- name: b\n  block: true\n  behavior: deny\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		from, err := limitsfile.Load([]limitsfile.Source{{Name: "a", Data: before}})
		if err != nil {
			return
		}
		to, err := limitsfile.Load([]limitsfile.Source{{Name: "b", Data: after}})
		if err != nil {
			return
		}
		to[0].Name = from[0].Name
		changed, err := limitsfile.Rewrite([]limitsfile.Source{{Name: "a", Data: before}}, to[0])
		if err != nil {
			t.Logf("refused: %v", err)
			return
		}
		data := before
		if len(changed) > 0 {
			data = changed[0].Data
		}
		got := load(t, limitsfile.Source{Name: "a", Data: data})
		if !bytes.Equal(limitsfile.Normalize(got[0]), limitsfile.Normalize(to[0])) {
			t.Fatalf("%s\nsays something else than\n%s", data, after)
		}
	})
}
