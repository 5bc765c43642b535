// Package desktest has what a controller must refuse, for the tests of every way
// in: limits files, and calls of the API.
package desktest

import (
	"fmt"
	"strings"

	"grl/limiter/limitsfile"
)

// Case is a set of limits files that must be refused, all of it, with the place.
type Case struct {
	Name string
	// Files makes the files anew: some are large.
	Files func() []limitsfile.Source
	// Whole says that the fault is of a file as a whole, or of all of them, and
	// has no line.
	Whole bool
}

// Poison returns more than 300 cases. Each is refused for one fault at least, of
// files that would hold without it or that nobody could mean.
func Poison() []Case {
	var cases []Case
	add := func(group string, files map[string]string) {
		for name, text := range files {
			cases = append(cases, one(group+": "+name, text))
		}
	}
	add("file", texts())
	add("number", numbers())
	add("name", names())
	add("key", keys())
	add("type", types())
	add("bucket", buckets())
	return append(cases, large()...)
}

func one(name, text string) Case {
	return Case{Name: name, Files: func() []limitsfile.Source {
		return []limitsfile.Source{{Name: "poison.yaml", Data: []byte(text)}}
	}}
}

// inBucket returns a file with one bucket that has these keys beside its name
// and behavior.
func inBucket(keys string) string {
	return "service: poison\nbuckets:\n  - {name: b, behavior: deny, " + keys + "}\n"
}

// texts are files that are no limits files.
func texts() map[string]string {
	return map[string]string{
		"empty":                "",
		"spaces":               "  \n \n",
		"comment only":         "# nothing\n",
		"a word":               "limits\n",
		"a number":             "5\n",
		"json list":            "[1, 2]\n",
		"json object":          `{"service": "poison", "buckets": []}`,
		"toml":                 "[service]\nname = \"poison\"\n",
		"html":                 "<html><body>service: poison</body></html>\n",
		"shell":                "#!/bin/sh\nrm -rf /\n",
		"binary":               "\x7fELF\x02\x01\x01\x00\x00\x00",
		"gzip":                 "\x1f\x8b\x08\x00\x00\x00\x00\x00",
		"conflict markers":     "service: poison\n<<<<<<< ours\nowner: a\n=======\nowner: b\n>>>>>>> theirs\n",
		"null service":         "service:\n",
		"number service":       "service: 5\n",
		"boolean service":      "service: true\n",
		"list service":         "service: [poison]\n",
		"no service":           "owner: a\nbuckets: []\n",
		"two services":         "service: a\nservice: b\n",
		"two documents":        "service: a\n---\nservice: b\n",
		"document end":         "service: a\n...\n",
		"directive":            "%YAML 1.1\n---\nservice: a\n",
		"merge key":            "service: a\n<<: {owner: b}\n",
		"tag":                  "service: !!binary YQ==\n",
		"python tag":           "service: !!python/object/apply:os.system [ls]\n",
		"anchor":               "service: &a a\n",
		"alias":                "service: *a\n",
		"alias to itself":      "service: a\nroutes: &r [*r]\n",
		"alias bomb":           aliasBomb(),
		"complex key":          "? service\n: a\n",
		"block scalar":         "service: |\n  a\n",
		"folded scalar":        "service: >-\n  a\n",
		"tab after key":        "service:\ta\n",
		"tab as indentation":   "service: a\nbuckets:\n\t- name: b\n",
		"byte order mark":      "\ufeffservice: a\n",
		"utf-16":               "\xff\xfes\x00e\x00r\x00",
		"invalid utf-8":        "service: a\xff\n",
		"overlong utf-8":       "service: a\xc0\x80\n",
		"surrogate":            "service: a\xed\xa0\x80\n",
		"nul byte":             "service: a\x00\n",
		"escape character":     "service: a\x1b[31m\n",
		"bell":                 "service: a\x07\n",
		"delete":               "service: a\x7f\n",
		"lone return":          "service: a\rbuckets: []\r",
		"line separator":       "service: a\u2028owner: b\n",
		"next line":            "service: a\u0085owner: b\n",
		"override":             "service: a\u202eb\n",
		"deep list":            "service: a\nbuckets: " + strings.Repeat("[", 10_000) + "\n",
		"deep mapping":         "service: a\nbuckets: " + strings.Repeat("{a: ", 10_000) + "\n",
		"deep dashes":          "service: a\nbuckets:\n" + strings.Repeat("- ", 10_000) + "\n",
		"seventeen levels":     "service: a\nbuckets: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + "\n",
		"buckets twice":        "service: a\nbuckets: []\nbuckets: []\n",
		"scalar buckets":       "service: a\nbuckets: all\n",
		"mapping of buckets":   "service: a\nbuckets:\n  b: {limit: {rps: 1}, behavior: deny}\n",
		"null bucket":          "service: a\nbuckets:\n  -\n",
		"misindented":          "service: a\nbuckets:\n    - name: b\n  - name: c\n",
		"unclosed flow":        "service: a\nbuckets: [{name: b\n",
		"unclosed quote":       "service: \"a\n",
		"environment variable": "service: ${SERVICE}\n",
		"template":             "service: {{ .Values.service }}\n",
		"include":              "service: a\nbuckets: !include other.yaml\n",
		"enforce":              "service: a\nenforce: both\n",
		"enforce a list":       "service: a\nenforce: [inbound]\n",
		"routes of nothing":    "service: a\nroutes: [\"\"]\n",
		"route twice":          "service: a\nroutes: [GET /a, GET /a]\n",
		"route without slash":  "service: a\nroutes: [\"GET a\"]\n",
		"route unclosed":       "service: a\nroutes: [\"GET /{a\"]\n",
		"routes in conflict":   "service: a\nroutes: [\"GET /{a}/b\", \"GET /a/{b}\"]\n",
		"exempt a word":        "service: a\nexempt: healthcheck\n",
		"exempt unknown":       "service: a\nexempt: [{callers: b}]\n",
		"exempt a number":      "service: a\nexempt: [{caller: 5}]\n",
	}
}

// badNumbers are no limits, candidates, weights or limits of a region.
var badNumbers = []string{
	"0", "-0", "0.0", "-1", "-0.5", "0.0009", "1e9999", "1e308", "1e10", "1000000001", "2147483648000000", "9223372036854775808", "18446744073709551616",
	"NaN", ".nan", ".NaN", "inf", ".inf", "+.inf", "-.inf", "Infinity", "null", "~", "true", "\"5\"", "'5'", "100/s", "1k", "5rps",
	"1_000", "1,000", "0x10", "0o7", "0b1", "010", "+5", ".5", "5.", "1e", "5 000", "[5]", "{a: 5}", "1:30", "٣", "½", "2026-01-01", "=", "\"\"",
}

func numbers() map[string]string {
	cases := map[string]string{}
	for _, n := range badNumbers {
		cases["limit "+n] = inBucket("limit: {rps: " + n + "}")
		cases["candidate "+n] = inBucket("limit: {rps: 5}, candidate: {rps: " + n + "}")
		cases["weight "+n] = inBucket("limit: {rps: 5}, share: max-min, weights: {a: " + n + "}")
		cases["region "+n] = inBucket("scope: region, limit: {rps: 5, regions: {eu: " + n + "}}")
	}
	for _, n := range []string{"0", "-1", "1.5", "1000001", "NaN", ".inf", "1e308", "\"1\"", "true", "[1]", "4294967297", "18446744073709551617"} {
		cases["cost "+n] = inBucket("limit: {rps: 5}, cost: {fixed: " + n + "}")
	}
	return cases
}

// badNames are no names of anything.
var badNames = []string{
	`""`, `" "`, `"_own"`, `"_cap-1"`, `"a\"b"`, `"<script>alert(1)</script>"`, `"'; DROP TABLE records; --"`, `"a\\b"`, `"a|b"`, `"a;b"`, `"a&b"`,
	`"a\u0000b"`, `"a\u001b[31mb"`, `"a\u202eb"`, `"a\nb"`, `"😀"`, `"pаyments"`, `"a  b"`, `"(a+)+$"`, `"a#b"`, `"a?b"`, `"!a"`, `"` + strings.Repeat("a", 257) + `"`,
}

func names() map[string]string {
	cases := map[string]string{}
	for i, n := range badNames {
		label := n
		if len(label) > 40 {
			label = fmt.Sprintf("number %d", i)
		}
		cases["service "+label] = "service: " + n + "\n"
		cases["bucket "+label] = "service: poison\nbuckets:\n  - {name: " + n + ", limit: {rps: 5}, behavior: deny}\n"
		cases["caller "+label] = inBucket("limit: {rps: 5}, match: {caller: " + n + "}")
		cases["procedure "+label] = inBucket("limit: {rps: 5}, match: {procedure: " + n + "}")
		cases["region "+label] = inBucket("scope: region, limit: {rps: 5, regions: {" + n + ": 5}}")
		if n != `""` {
			cases["owner "+label] = "service: poison\nowner: " + n + "\n"
		}
	}
	for _, p := range []string{`"**"`, `"*a"`, `"a*b"`, `"a**"`, `"[a-z]*x"`, `"a* "`} {
		cases["pattern "+p] = inBucket("limit: {rps: 5}, match: {caller: " + p + "}")
	}
	return cases
}

// keys are misspelt, or of another schema.
func keys() map[string]string {
	cases := map[string]string{}
	for _, key := range []string{"Service", "services", "owners", "team", "Enforce", "mode", "route", "Buckets", "bucket", "limits", "exemptions", "version", "apiVersion", "kind", "metadata", "include", "default"} {
		cases["top "+key] = "service: poison\n" + key + ": a\n"
	}
	for _, key := range []string{"Name", "caller", "procedure", "rps", "limits", "Limit", "window", "burst", "behaviour", "Behavior", "priority", "regex", "enabled", "disabled", "shadow", "dry_run", "weight", "tier", "retry", "on-silence", "onSilence", "candidates", "cap", "id", "key", "unit", "scopes", "__proto__"} {
		cases["bucket "+key] = inBucket("limit: {rps: 5}, " + key + ": 1")
	}
	for _, key := range []string{"RPS", "rpm", "qps", "rate", "requests_per_second", "per", "unit", "burst", "region", "default"} {
		cases["limit "+key] = inBucket("limit: {rps: 5, " + key + ": 5}")
	}
	for _, key := range []string{"callers", "method", "path", "host", "header", "Caller"} {
		cases["match "+key] = inBucket("limit: {rps: 5}, match: {" + key + ": a}")
	}
	return cases
}

// types have a value of another type than the key takes.
func types() map[string]string {
	cases := map[string]string{}
	for _, key := range []string{"match", "per", "scope", "share", "weights", "tiers", "coherent", "retries", "identity", "cost", "on_silence", "candidate"} {
		for _, value := range []string{"5", "true", "wrong", "[1]", "{a: {b: c}}", "~", "\"\""} {
			cases[key+" "+value] = inBucket("limit: {rps: 5}, " + key + ": " + value)
		}
	}
	for _, value := range []string{"5", "unlimited", "[5]", "~", "{}", "true", "\"\""} {
		cases["limit "+value] = inBucket("limit: " + value)
		cases["block "+value] = inBucket("block: " + strings.Replace(value, "true", "false", 1))
		cases["behavior "+value] = "service: poison\nbuckets:\n  - {name: b, limit: {rps: 5}, behavior: " + value + "}\n"
	}
	return cases
}

// buckets contradict themselves or each other.
func buckets() map[string]string {
	two := func(a, b string) string {
		return "service: poison\nbuckets:\n  - {behavior: deny, limit: {rps: 5}, " + a + "}\n  - {behavior: deny, limit: {rps: 6}, " + b + "}\n"
	}
	return map[string]string{
		"no limit":                 inBucket("match: {caller: a}"),
		"no behavior":              "service: poison\nbuckets:\n  - {name: b, limit: {rps: 5}}\n",
		"no name":                  "service: poison\nbuckets:\n  - {behavior: deny, limit: {rps: 5}}\n",
		"block and limit":          inBucket("block: true, limit: {rps: 5}"),
		"behavior drop":            "service: poison\nbuckets:\n  - {name: b, limit: {rps: 5}, behavior: drop}\n",
		"behavior Deny":            "service: poison\nbuckets:\n  - {name: b, limit: {rps: 5}, behavior: Deny}\n",
		"the same name":            two("name: b, match: {caller: a}", "name: b, match: {caller: c}"),
		"the same match":           two("name: b", "name: c"),
		"the same match by star":   two("name: b, match: {caller: \"*\"}", "name: c"),
		"candidate in shadow":      "service: poison\nbuckets:\n  - {name: b, limit: {rps: 5}, candidate: {rps: 4}, behavior: allow}\n",
		"candidate of a block":     inBucket("block: true, candidate: {rps: 4}"),
		"candidate without rps":    inBucket("limit: {rps: 5}, candidate: {}"),
		"candidate by region":      inBucket("limit: {rps: 5}, candidate: {rps: 4, regions: {eu: 3}}"),
		"hourly":                   inBucket("limit: {rps: 5, hourly: [1, 2]}"),
		"regions without scope":    inBucket("limit: {rps: 5, regions: {eu: 5}}"),
		"regions of zones":         inBucket("scope: zone, limit: {rps: 5, regions: {eu: 5}}"),
		"regions a list":           inBucket("scope: region, limit: {rps: 5, regions: [eu]}"),
		"region twice":             inBucket("scope: region, limit: {rps: 5, regions: {eu: 5, eu: 6}}"),
		"scope planet":             inBucket("limit: {rps: 5}, scope: planet"),
		"per procedure":            inBucket("limit: {rps: 5}, per: procedure"),
		"weights without max-min":  inBucket("limit: {rps: 5}, weights: {a: 1}"),
		"max-min for each caller":  inBucket("limit: {rps: 5}, per: caller, share: max-min"),
		"max-min of a block":       inBucket("block: true, share: max-min"),
		"weight twice":             inBucket("limit: {rps: 5}, share: max-min, weights: {a: 1, a: 2}"),
		"one tier":                 inBucket("limit: {rps: 5}, tiers: [{name: gold}]"),
		"nine tiers":               inBucket("limit: {rps: 5}, tiers: [" + strings.Repeat("{name: a}, ", 9) + "]"),
		"tiers of one name":        inBucket("limit: {rps: 5}, tiers: [{name: a, callers: [b]}, {name: a}]"),
		"tiers of anyone":          inBucket("limit: {rps: 5}, tiers: [{name: a}, {name: b}]"),
		"tier of tiers":            inBucket("limit: {rps: 5}, tiers: [{name: a, callers: [b]}, {name: c, tiers: [d, e]}]"),
		"tier header without name": inBucket("limit: {rps: 5}, tiers: [{name: a, header: {values: [x]}}, {name: b}]"),
		"tiers of a block":         inBucket("block: true, tiers: [{name: a, callers: [b]}, {name: c}]"),
		"retries never":            inBucket("limit: {rps: 5}, retries: never"),
		"retries of a block":       inBucket("block: true, retries: first-shed"),
		"coherent by user":         inBucket("limit: {rps: 5}, coherent: user"),
		"coherent block":           inBucket("block: true, coherent: trace"),
		"silence closes":           inBucket("limit: {rps: 5}, on_silence: close"),
		"identity claimed":         inBucket("limit: {rps: 5}, identity: claimed"),
		"two costs":                inBucket("limit: {rps: 5}, cost: {fixed: 2, header: x-cost}"),
		"no cost":                  inBucket("limit: {rps: 5}, cost: {}"),
		"cost of a bad header":     inBucket("limit: {rps: 5}, cost: {header: \"x cost\"}"),
		"costs of two headers":     two("name: b, cost: {header: x-a}, match: {caller: a}", "name: c, cost: {header: x-b}"),
		"procedure is a path":      inBucket("limit: {rps: 5}, match: {procedure: /v1/charges}"),
		"procedure of no route":    "service: poison\nroutes: [GET /a]\nbuckets:\n  - {name: b, match: {procedure: GET /b}, limit: {rps: 5}, behavior: deny}\n",
		"limit twice":              inBucket("limit: {rps: 5}, limit: {rps: 6}"),
		"rps twice":                inBucket("limit: {rps: 5, rps: 6}"),
	}
}

// aliasBomb would be ten to the ninth names if aliases were followed.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("service: a\na0: &a0 [lol]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return b.String()
}
