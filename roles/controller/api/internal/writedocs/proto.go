package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// file is what the proto files declare, in their order.
type file struct {
	services []service
	messages map[string]*message // by name, of nested ones Outer.Inner; enums too
}

type service struct {
	name, comment string
	procedures    []procedure
}

type procedure struct {
	name, comment, request, response string
	reads                            bool // no side effects
}

// message is a message or an enum.
type message struct {
	name, comment string
	enum          bool
	fields        []field
}

// field is a field, or a value of an enum.
type field struct {
	name, kind, comment string
	oneof               string // name of the group of which only one is set
}

var (
	declaration = regexp.MustCompile(`^(service|message|enum|oneof) (\w+) \{(\})?$`)
	rpc         = regexp.MustCompile(`^rpc (\w+)\((?:stream )?(\w+)\) returns \((?:stream )?(\w+)\)( \{|;)$`)
	fieldLine   = regexp.MustCompile(`^((?:optional |repeated )?[\w.]+|map<\w+, \w+>) (\w+) = \d+( \[.*\])?;$`)
	valueLine   = regexp.MustCompile(`^(\w+) = \d+;$`)
	passed      = regexp.MustCompile(`^(syntax|package|option|import|reserved) .*;$`)
)

// read reads the proto files of a directory. It takes the subset that they are
// written in, as buf formats it, and refuses anything else.
func read(dir string, names ...string) (*file, error) {
	p := parser{out: &file{messages: map[string]*message{}}}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if err := p.line(strings.TrimSpace(line)); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
		}
	}
	return p.out, nil
}

// parser is inside of what open lists.
type parser struct {
	out      *file
	open     []open
	comments []string // right above
}

type open struct{ kind, name string }

func (p *parser) line(line string) error {
	if comment, ok := strings.CutPrefix(line, "//"); ok {
		p.comments = append(p.comments, strings.TrimPrefix(comment, " "))
		return nil
	}
	comment := strings.Join(p.comments, "\n")
	p.comments = nil
	switch {
	case line == "" || passed.MatchString(line):
		if strings.Contains(line, "NO_SIDE_EFFECTS") {
			p.procedure().reads = true
		}
		return nil
	case line == "}":
		p.open = p.open[:len(p.open)-1]
		return nil
	}
	if m := declaration.FindStringSubmatch(line); m != nil {
		p.declare(m[1], m[2], comment)
		if m[3] == "" {
			p.open = append(p.open, open{m[1], m[2]})
		}
		return nil
	}
	return p.member(line, comment)
}

func (p *parser) procedure() *procedure {
	s := &p.out.services[len(p.out.services)-1]
	return &s.procedures[len(s.procedures)-1]
}

func (p *parser) declare(kind, name, comment string) {
	switch kind {
	case "service":
		p.out.services = append(p.out.services, service{name: name, comment: comment})
	case "message", "enum":
		full := strings.TrimPrefix(p.scope()+"."+name, ".")
		p.out.messages[full] = &message{name: full, comment: comment, enum: kind == "enum"}
	}
}

// scope returns the full name of the message that the parser is inside of.
func (p *parser) scope() string {
	var names []string
	for _, o := range p.open {
		if o.kind == "message" || o.kind == "enum" {
			names = append(names, o.name)
		}
	}
	return strings.Join(names, ".")
}

func (p *parser) member(line, comment string) error {
	if m := rpc.FindStringSubmatch(line); m != nil {
		s := &p.out.services[len(p.out.services)-1]
		s.procedures = append(s.procedures, procedure{name: m[1], comment: comment, request: m[2], response: m[3]})
		if m[4] == " {" {
			p.open = append(p.open, open{"rpc", m[1]})
		}
		return nil
	}
	inside := p.out.messages[p.scope()]
	if inside == nil {
		return fmt.Errorf("not understood: %q", line)
	}
	if m := fieldLine.FindStringSubmatch(line); m != nil && !inside.enum {
		f := field{name: m[2], kind: p.kind(m[1]), comment: comment}
		if last := p.open[len(p.open)-1]; last.kind == "oneof" {
			f.oneof = last.name
		}
		inside.fields = append(inside.fields, f)
		return nil
	}
	if m := valueLine.FindStringSubmatch(line); m != nil && inside.enum {
		inside.fields = append(inside.fields, field{name: m[1], comment: comment})
		return nil
	}
	return fmt.Errorf("not understood: %q", line)
}

// kind returns a field's type with the full name of a nested one.
func (p *parser) kind(text string) string {
	label, name, ok := strings.Cut(text, " ")
	if !ok || strings.HasPrefix(text, "map<") {
		label, name = "", text
	}
	if nested := p.scope() + "." + name; p.out.messages[nested] != nil {
		name = nested
	}
	return strings.TrimSpace(label + " " + name)
}
