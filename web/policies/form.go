package policies

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"grl/limiter/yamlfile"
	"grl/policy"
	"grl/policy/policyfile"
	"grl/web/format"
	"grl/web/page"
)

// values are the fields of the form by the path of the key that each is, such as
// "match.service" or "events[0].from", as they were typed.
type values map[string]string

// keyed is a key of a policy file with the fields below it.
type keyed struct {
	key    string
	fields []string
}

// lists are the keys that are lists, with the fields of an item.
var lists = []keyed{
	{"events", []string{"name", "from", "to", "factor"}},
	{"capacity", []string{"from", "rps"}},
	{"ignore", []string{"from", "to", "reason", "service"}},
	{"quota", []string{"rps", "regions", "from", "to"}},
}

// mostItems is how many items of a list a form shows; more are edited as YAML.
const mostItems = 20

// groups are the keys that have fields of their own, in the order of a file.
var groups = []keyed{
	{"match", []string{"service", "caller", "bucket"}},
	{"discover", []string{"by", "min_rps"}},
	{"params", []string{"second_over_minute"}},
}

// scalars are the keys of one value, in the order of a file.
var scalars = []string{"name", "kind", "mode", "history", "cycle", "time_zone", "floor", "ceiling", "round", "max_step", "promote_after"}

// order is that of a file.
var order = []string{
	"name", "kind", "mode", "match", "history", "cycle", "time_zone", "floor", "ceiling", "round", "max_step", "promote_after",
	"quota", "events", "capacity", "ignore", "discover", "params",
}

// valuesOf reads a policy file; false: it cannot be shown as a form.
func valuesOf(data []byte) (values, bool) {
	var d yamlfile.Decoder
	top := d.ReadFile(data, policyfile.MaxFileBytes, "name: nightly")
	if len(d.Errs) > 0 {
		return nil, false
	}
	v := values{}
	for _, p := range top.Pairs {
		if p.Value == nil || !v.read(p.Key.Text, p.Value) {
			return nil, false
		}
	}
	return v, true
}

// read takes the value of a key in; false: it is not one that the form has.
func (v values) read(key string, n *yamlfile.Node) bool {
	switch {
	case slices.Contains(scalars, key):
		return v.scalar(key, n)
	case n.Kind == yamlfile.List:
		fields := fieldsOf(lists, key)
		if fields == nil || len(n.Items) > mostItems {
			return false
		}
		for at, item := range n.Items {
			if !v.fields(fmt.Sprintf("%s[%d]", key, at), item, fields) {
				return false
			}
		}
		return true
	}
	fields := fieldsOf(groups, key)
	return fields != nil && v.fields(key, n, fields)
}

// fieldsOf returns the fields of a key, nil if it is not one of all.
func fieldsOf(all []keyed, key string) []string {
	for _, k := range all {
		if k.key == key {
			return k.fields
		}
	}
	return nil
}

// fields takes the fields of a mapping in.
func (v values) fields(at string, n *yamlfile.Node, fields []string) bool {
	if n.Kind != yamlfile.Mapping {
		return false
	}
	for _, p := range n.Pairs {
		key := at + "." + p.Key.Text
		switch {
		case p.Value == nil || !slices.Contains(fields, p.Key.Text):
			return false
		case p.Key.Text == "regions":
			if !v.regions(key, p.Value) {
				return false
			}
		case !v.scalar(key, p.Value):
			return false
		}
	}
	return true
}

// regions takes limits of regions in: "eu: 600, us: 300".
func (v values) regions(key string, n *yamlfile.Node) bool {
	var parts []string
	for _, p := range n.Pairs {
		if p.Value == nil || p.Value.Kind == yamlfile.Mapping || p.Value.Kind == yamlfile.List || strings.ContainsAny(p.Key.Text, ",:") {
			return false
		}
		parts = append(parts, p.Key.Text+": "+p.Value.Text)
	}
	v[key] = strings.Join(parts, ", ")
	return n.Kind == yamlfile.Mapping
}

func (v values) scalar(key string, n *yamlfile.Node) bool {
	v[key] = n.Text
	return n.Kind != yamlfile.Mapping && n.Kind != yamlfile.List
}

// typed reads what was typed into the form; items of a list that are empty are
// left out.
func typed(form url.Values) values {
	v := values{}
	take := func(to, from string) {
		if text := strings.TrimSpace(form.Get(from)); text != "" {
			v[to] = text
		}
	}
	for _, key := range scalars {
		take(key, key)
	}
	for _, g := range groups {
		for _, f := range g.fields {
			take(g.key+"."+f, g.key+"."+f)
		}
	}
	for _, l := range lists {
		to := 0
		for from := range mostItems + 1 {
			before := len(v)
			for _, f := range l.fields {
				take(fmt.Sprintf("%s[%d].%s", l.key, to, f), fmt.Sprintf("%s[%d].%s", l.key, from, f))
			}
			if len(v) > before {
				to++
			}
		}
	}
	return v
}

// items returns how many items of a list there are.
func (v values) items(key string) int {
	n := 0
	for ; n <= mostItems; n++ {
		at := fmt.Sprintf("%s[%d].", key, n)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(v)), func(k string) bool { return strings.HasPrefix(k, at) }) {
			break
		}
	}
	return n
}

// yaml returns the value of a key as YAML, "" if nothing was typed.
func (v values) yaml(key string) string {
	if slices.Contains(scalars, key) {
		return value(key, v[key])
	}
	if fields := fieldsOf(groups, key); fields != nil {
		return v.mapping(key, fields)
	}
	text := ""
	for i := range v.items(key) {
		text += "\n  - " + v.mapping(fmt.Sprintf("%s[%d]", key, i), fieldsOf(lists, key))
	}
	return text
}

// mapping writes fields on one line.
func (v values) mapping(at string, fields []string) string {
	var parts []string
	for _, f := range fields {
		text := v[at+"."+f]
		if text == "" {
			continue
		}
		if f == "regions" {
			text = regionsYAML(text)
		} else {
			text = value(f, text)
		}
		parts = append(parts, f+": "+text)
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// regionsYAML writes what was typed as "eu: 600, us: 300".
func regionsYAML(text string) string {
	var parts []string
	for _, part := range strings.Split(text, ",") {
		region, rps, _ := strings.Cut(part, ":")
		if region = strings.TrimSpace(region); region == "" {
			region = "_" // so that the reader says what is wrong with it
		}
		parts = append(parts, value("region", region)+": "+value("rps", strings.TrimSpace(rps)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var (
	numeric = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	// word is what YAML reads as a string in any of its versions, inside brackets
	// too.
	word   = regexp.MustCompile(`^[a-z][a-z0-9]*([./-][a-z0-9]+)*$`)
	when   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:]{4,8}([+-][0-9:]{4,5}|Z)?)?$`)
	length = regexp.MustCompile(`^[0-9]+[wd]$`)
)

// numbers are the fields that are numbers in a file.
var numbers = []string{"floor", "ceiling", "round", "max_step", "factor", "rps", "min_rps", "second_over_minute"}

// value writes what was typed as the value of a field: as it stands where YAML
// reads it so, else in quotes.
func value(field, text string) string {
	switch text {
	case "":
		return ""
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf":
		return strconv.Quote(text)
	}
	if slices.Contains(numbers, field) && numeric.MatchString(text) || word.MatchString(text) || when.MatchString(text) || length.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

// compose writes a policy file of what was typed: into the file that the form was
// made from, where there is one, else anew. Lost says that comments of the file
// are not in it.
func compose(base []byte, v values) (text []byte, lost bool) {
	if base != nil {
		if was, ok := valuesOf(base); ok {
			if was["mode"] == "" && v["mode"] == "propose" {
				v = maps.Clone(v)
				delete(v, "mode") // what holds without it
			}
			var changes []policyfile.Key
			for _, key := range order {
				if is := v.yaml(key); is != was.yaml(key) {
					changes = append(changes, policyfile.Key{Name: key, Value: is})
				}
			}
			if text, err := policyfile.Rewrite(base, changes); err == nil {
				return text, false
			}
		}
		lost = strings.Contains(string(base), "#")
	}
	var b strings.Builder
	for _, key := range order {
		switch is := v.yaml(key); {
		case is == "":
		case strings.HasPrefix(is, "\n"):
			b.WriteString(key + ":" + is + "\n")
		default:
			b.WriteString(key + ": " + is + "\n")
		}
	}
	return []byte(b.String()), lost
}

// faults are what is wrong with a policy, by the field of the form, and what no
// field of the form is meant by.
type faults struct {
	at   map[string]string
	rest []page.Problem
}

// faultsOf reads a policy and says what is wrong: at the fields of the form, or by
// the lines of the text.
func faultsOf(text []byte, form bool) (policy.Spec, faults) {
	spec, err := policyfile.Parse("policy", text)
	if err == nil {
		return spec, faults{}
	}
	f := faults{at: make(map[string]string)}
	var errs policyfile.Errors
	if !errors.As(err, &errs) {
		f.rest = append(f.rest, page.Problem{Field: "policy", Text: format.Printable(err.Error())})
		return spec, f
	}
	for _, e := range errs {
		bare := *e
		bare.File, bare.Line, bare.Column, bare.Key = "", 0, 0, ""
		sentence := format.Sentence(format.Printable(bare.Error()))
		if field, ok := fieldOf(e.Key); ok && form {
			f.at[field] = strings.TrimSpace(f.at[field] + " " + sentence)
			continue
		}
		where := e.Key
		if e.Line > 0 && !form {
			where = strings.TrimSuffix(fmt.Sprintf("line %d, %s", e.Line, e.Key), ", ")
		}
		if where == "" {
			where = "policy"
		}
		f.rest = append(f.rest, page.Problem{Field: format.Printable(where), Line: e.Line, Text: sentence})
	}
	return spec, f
}

// add takes in what the service says of the text, which begins with a key, and of
// the reason.
func (f *faults) add(problems []page.Problem, form bool) {
	if f.at == nil {
		f.at = make(map[string]string)
	}
	for _, p := range problems {
		key, text, _ := strings.Cut(p.Text, ": ")
		field, ok := fieldOf(key)
		switch {
		case p.Field == "reason":
			f.at[p.Field] = format.Sentence(p.Text)
		case ok && form:
			f.at[field] = strings.TrimSpace(f.at[field] + " " + format.Sentence(text))
		default:
			f.rest = append(f.rest, p)
		}
	}
}

// text says what is wrong with a text as a whole; "": nothing.
func (f faults) text() string {
	if len(f.rest) == 0 {
		return ""
	}
	return format.Sentence(f.rest[0].Field + ": " + f.rest[0].Text)
}

func (f faults) any() bool { return len(f.at)+len(f.rest) > 0 }

// count is how many there are.
func (f faults) count() int { return len(f.at) + len(f.rest) }

// fieldOf returns the field of the form that a path of a key is shown at: of an
// item as a whole its first one.
func fieldOf(key string) (field string, ok bool) {
	at, rest, _ := strings.Cut(key, ".")
	name, _, _ := strings.Cut(at, "[")
	fields := fieldsOf(groups, at)
	if fields == nil && name != at {
		fields = fieldsOf(lists, name)
	}
	rest, _, _ = strings.Cut(rest, ".")
	switch {
	case slices.Contains(scalars, key):
		return key, true
	case fields == nil:
		return "", false
	case slices.Contains(fields, rest):
		return at + "." + rest, true
	}
	return at + "." + fields[0], true
}
