package httplimit

import (
	"fmt"
	"strings"
)

// spiffePath says which segment of the path of a SPIFFE id names the caller;
// empty: the last.
type spiffePath []string // segments: literal, "*" or "{caller}"

const callerSegment = "{caller}"

func parseSPIFFEPath(template string) (spiffePath, error) {
	if template == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(template, "/")
	if !ok {
		return nil, fmt.Errorf("read SPIFFE template: %q does not begin with /", template)
	}
	path := spiffePath(strings.Split(rest, "/"))
	callers := 0
	for _, s := range path {
		switch {
		case s == callerSegment:
			callers++
		case s == "":
			return nil, fmt.Errorf("read SPIFFE template: %q has an empty segment", template)
		case s != "*" && strings.ContainsAny(s, "{}*"):
			return nil, fmt.Errorf("read SPIFFE template: %q: segment %q is neither a word, * nor {caller}", template, s)
		}
	}
	if callers != 1 {
		return nil, fmt.Errorf("read SPIFFE template: %q has not exactly one {caller}", template)
	}
	return path, nil
}

// caller returns the name in the path of a SPIFFE id, "" if the path has
// another form.
func (p spiffePath) caller(path string) string {
	if len(p) == 0 {
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	name := ""
	for _, want := range p {
		if path == "" || path[0] != '/' {
			return ""
		}
		path = path[1:]
		segment := path
		if i := strings.IndexByte(path, '/'); i >= 0 {
			segment = path[:i]
		}
		path = path[len(segment):]
		switch want {
		case "*":
		case callerSegment:
			name = segment
		default:
			if segment != want {
				return ""
			}
		}
	}
	if path != "" {
		return ""
	}
	return name
}
