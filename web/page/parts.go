package page

import (
	"strings"

	"github.com/a-h/templ"

	"grl/web/format"
)

// Header is what stands at the top of a page.
type Header struct {
	Title   string
	States  templ.Component // beside the title; nil: none
	Facts   []string        // below it
	Actions templ.Component // links and forms, the strongest last; nil: none
}

// Figure is one of the few numbers of a page.
type Figure struct {
	Name, Value, Unit string          // Unit "": none
	Class             string          // "stat--drop", "stat--virtual" or ""
	Key               templ.Component // swatch of the line in the chart; nil: none
}

// Label is a bucket in a table or sentence, ready to print.
type Label struct {
	Service, Name string
	For           string // the caller or class of one cell; "": none
	Match         string // what it matches; "": not shown
	Path          string // of its page; "": no link
}

// NewLabel returns the label of a bucket by its full name, with a link to its
// page, or to that of one of its cells.
func NewLabel(bucket, instance, caller, match string) Label {
	service, name, _ := strings.Cut(bucket, "/")
	return Label{
		Service: format.Printable(service), Name: format.Printable(name), For: format.Printable(caller),
		Match: format.Printable(match), Path: BucketPath(bucket, instance, caller),
	}
}

// title is all of a label that is cut on a narrow screen.
func (l Label) title() string {
	if l.For == "" {
		return l.Service + "/" + l.Name
	}
	return l.Service + "/" + l.Name + " for " + l.For
}

// Field is one value of a form.
type Field struct {
	Name  string // of the value; and the element's id, so once a page
	Label string
	Value string // as typed
	Hint  string // below; "": none
	Error string // a sentence; "": it is right
	// Of an input.
	Type        string // "": text
	Unit        string // after the value; "": none
	Placeholder string
	List        string // id of a datalist; "": none
	Complete    string // autocomplete; "": off
	Max         int    // characters; 0: 256
	Number      bool   // aligned as one
	Required    bool
	Rows        int // of an area; 0: 3
}

func (f Field) kind() string {
	if f.Type == "" {
		return "text"
	}
	return f.Type
}

func (f Field) complete() string {
	if f.Complete == "" {
		return "off"
	}
	return f.Complete
}

func (f Field) most() int {
	if f.Max == 0 {
		return 256
	}
	return f.Max
}

func (f Field) rows() int {
	if f.Rows == 0 {
		return 3
	}
	return f.Rows
}

// about returns the ids of what describes the field.
func (f Field) about() string {
	switch {
	case f.Error != "":
		return f.Name + "-error"
	case f.Hint != "":
		return f.Name + "-hint"
	}
	return ""
}

// Effect is what a change would do, said before it is done.
type Effect struct {
	// URL answers a POST of the form around it with EffectContent, while one
	// types; "": nothing is fetched.
	URL   string
	Lead  string // the sentence; "": nothing to say yet
	Bad   bool   // it drops
	Facts []Fact
}

// Fact is a number with its name.
type Fact struct {
	Name, Value string
	Old         string       // before the change; "": there is none
	At          format.Stamp // in place of Value, if it is not zero
}

// DiffLine is a line of a difference.
type DiffLine struct {
	Kind string // "old", "new", "at" (where it is) or "": as before
	Text string
}

const shownDiff = 400 // lines of a difference

// DiffLines returns the lines of a difference in the unified format, ready to
// print; the last one says how many were left out of a long one.
func DiffLines(unified string) []DiffLine {
	var lines []DiffLine
	all := strings.Split(strings.TrimRight(unified, "\n"), "\n")
	if unified == "" {
		all = nil
	}
	for i, text := range all {
		if i == shownDiff {
			lines = append(lines, DiffLine{Kind: "at", Text: format.Plural(len(all)-i, "more line")})
			break
		}
		lines = append(lines, DiffLine{Kind: diffKind(text), Text: format.Printable(strings.ReplaceAll(text, "\t", "    "))})
	}
	return lines
}

func diffKind(line string) string {
	switch {
	case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "@@"):
		return "at"
	case strings.HasPrefix(line, "-"):
		return "old"
	case strings.HasPrefix(line, "+"):
		return "new"
	}
	return ""
}

// At returns what is wrong with a field of the form, as a sentence; "": nothing.
func (f *Refusal) At(field string) string {
	for _, p := range f.Problems {
		if p.Field == field {
			return format.Sentence(p.Text)
		}
	}
	return ""
}

// attributes are those of every control, which depend on what describes it.
func (f Field) attributes() templ.Attributes {
	out := templ.Attributes{}
	if about := f.about(); about != "" {
		out["aria-describedby"] = about
	}
	if f.Error != "" {
		out["aria-invalid"] = "true"
	}
	return out
}
