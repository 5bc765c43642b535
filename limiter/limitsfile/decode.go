package limitsfile

import (
	"fmt"
	"strings"

	"grl/limiter"
)

// decode reads what one file says, as far as it can be read. What the file's
// parts say about each other is for merge.
func decode(name string, data []byte) (*File, Errors) {
	d := &decoder{file: &File{Name: name}, seen: map[string]place{}}
	if d.errs = scanBytes(name, data); len(d.errs) > 0 {
		return d.file, d.errs
	}
	for p := range pieces(data) {
		if d.full() {
			d.errs = append(d.errs, &Error{
				File: name, Line: p.line, Column: 1,
				Problem: fmt.Sprintf("%d errors: the file was not read from here on", MaxErrors),
			})
			break
		}
		d.piece(p)
	}
	d.finish()
	return d.file, d.errs
}

// decoder gathers what a file says, and what is wrong with it.
type decoder struct {
	file *File
	errs Errors
	seen map[string]place // keys of the file so far

	list  string // the key whose items the item pieces are; "" refuses them
	items int    // of that list so far
}

func (d *decoder) full() bool { return len(d.errs) >= MaxErrors }

// fail notes that the value at key is not what it may be.
func (d *decoder) fail(at place, key, found, expected string) {
	d.errs = append(d.errs, &Error{File: d.file.Name, Line: at.line, Column: at.column, Key: key, Found: found, Expected: expected})
}

// problem notes what is wrong where found and expected would not say it.
func (d *decoder) problem(at place, key, problem string) {
	d.errs = append(d.errs, &Error{File: d.file.Name, Line: at.line, Column: at.column, Key: key, Problem: problem})
}

func (d *decoder) piece(p piece) {
	if p.kind == badPiece {
		d.fail(place{p.line, p.column}, "", p.found, p.expected)
		return
	}
	if p.kind == itemPiece && d.list == "" {
		return // the list was refused as a whole
	}
	if c := p.text[0]; c == '{' || c == '[' {
		d.fail(place{p.line, 1}, "", "a value in brackets", "keys at the start of the line, such as \"service: payments\"")
		return
	}
	n, bad := parsePiece(p)
	if bad != nil {
		d.errs = append(d.errs, &Error{
			File: d.file.Name, Line: bad.line, Column: bad.column,
			Problem: bad.problem, Found: bad.found, Expected: bad.expected,
		})
		if p.kind != itemPiece {
			d.list = ""
			d.seen[leadingWord(p.text)] = place{p.line, 1} // it is there, though wrong
		}
		return
	}
	if p.kind == itemPiece {
		d.itemPiece(n)
		return
	}
	d.keyPiece(n, p.kind == listPiece)
}

func leadingWord(text string) string { return text[:len(text)-len(strings.TrimLeft(text, wordChars))] }

func (d *decoder) itemPiece(n *node) {
	if n.kind != listNode || len(n.items) != 1 {
		d.fail(n.place, d.list, n.describe(), `one item behind "- "`)
		return
	}
	d.item(n.items[0])
}

// keyPiece takes a key of the file. With follows its list comes in pieces.
func (d *decoder) keyPiece(n *node, follows bool) {
	d.list, d.items = "", 0
	if n.kind != mappingNode {
		d.fail(n.place, "", n.describe(), `keys with values, such as "service: payments"`)
		return
	}
	lists := func(key string) func(*node, string) {
		return func(v *node, path string) { d.wholeList(v, key, follows) }
	}
	d.keys(n, "", d.seen, fields{
		"service": d.service,
		"owner": func(v *node, path string) {
			d.file.Service.Owner, d.file.owner = d.name(v, path, ownerName), v.place
		},
		"enforce": func(v *node, path string) {
			word := d.word(v, path, "inbound", "outbound")
			if d.file.enforce = v.place; word == "outbound" {
				d.file.Service.Enforce = limiter.Outbound
			}
		},
		"routes":  lists("routes"),
		"exempt":  lists("exempt"),
		"buckets": lists("buckets"),
	})
}

func (d *decoder) service(v *node, path string) {
	d.file.Service.Name, d.file.service = d.name(v, path, serviceName), v.place
}

// wholeList takes a list that is written behind its key; one that follows in
// pieces it only opens.
func (d *decoder) wholeList(v *node, key string, follows bool) {
	d.list = key
	if follows {
		return
	}
	if v.kind != listNode {
		d.fail(v.place, key, v.describe(), "a list")
		d.list = ""
		return
	}
	for _, item := range v.items {
		d.item(item)
	}
}

// item takes one item of the open list.
func (d *decoder) item(n *node) {
	path := fmt.Sprintf("%s[%d]", d.list, d.items)
	d.items++
	most := MaxListItems
	if d.list == "buckets" {
		most = MaxBuckets
	}
	if d.items > most {
		d.fail(n.place, d.list, fmt.Sprintf("more than %d", most), fmt.Sprintf("at most %d", most))
		d.list = ""
		return
	}
	switch d.list {
	case "routes":
		if route, ok := d.route(n, path); ok {
			d.file.Service.Routes = append(d.file.Service.Routes, route)
			d.file.routes = append(d.file.routes, item{n.place, d.items - 1})
		}
	case "exempt":
		if m, ok := d.match(n, path); ok {
			d.file.Service.Exempt = append(d.file.Service.Exempt, m)
		}
	case "buckets":
		if b, ok := d.bucket(n, path); ok {
			d.file.Service.Buckets = append(d.file.Service.Buckets, b)
			d.file.buckets = append(d.file.buckets, item{n.place, d.items - 1})
		}
	}
}

// finish notes what a whole file must have, and names the buckets' service.
func (d *decoder) finish() {
	if _, ok := d.seen["service"]; !ok && !d.full() {
		found := `no key "service"`
		if len(d.seen) == 0 && len(d.errs) == 0 {
			found = "an empty file"
		}
		d.fail(place{1, 1}, "", found, `the service that the file limits, as "service: payments"`)
	}
	for i := range d.file.Service.Buckets {
		d.file.Service.Buckets[i].Service = d.file.Service.Name
	}
}

// fields says what to do with the value of each key of a mapping; nil is a key
// that a later version takes.
type fields map[string]func(v *node, path string)

// keys hands the values of a mapping out. Keys that are unknown, repeated or
// not supported yet are errors. seen has the keys met so far.
func (d *decoder) keys(n *node, path string, seen map[string]place, f fields) {
	for _, p := range n.pairs {
		key, at := p.key.text, join(path, p.key.text)
		take, known := f[key]
		switch first, again := seen[key]; {
		case p.key.kind != plainNode && p.key.kind != quotedNode || !known:
			d.unknownKey(p.key, path, f)
		case again:
			d.problem(p.key.place, at, fmt.Sprintf("given twice: first on line %d, column %d", first.line, first.column))
		case take == nil:
			d.problem(p.key.place, at, "not supported yet")
			seen[key] = p.key.place
		default:
			seen[key] = p.key.place
			take(p.value, at)
		}
	}
}

func (d *decoder) unknownKey(key *node, path string, f fields) {
	expected := "one of " + strings.Join(supported(f), ", ")
	if near := nearest(key.text, f); near != "" {
		expected = fmt.Sprintf("%q, or %s", near, expected)
	}
	d.errs = append(d.errs, &Error{
		File: d.file.Name, Line: key.line, Column: key.column, Key: path,
		Problem: "unknown key", Found: key.describe(), Expected: expected,
	})
}

func join(path, key string) string {
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}
