package limitsfile

import (
	"fmt"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

// decode reads what one file says, as far as it can be read. What the file's
// parts say about each other is for merge.
func decode(name string, data []byte) (*File, Errors) {
	d := &decoder{Decoder: yamlfile.Decoder{File: name}, file: &File{Name: name}, seen: map[string]yamlfile.Place{}}
	if d.Errs = yamlfile.Scan(name, data, MaxFileBytes); len(d.Errs) > 0 {
		return d.file, d.Errs
	}
	for p := range yamlfile.Pieces(data, exampleKey) {
		if d.Full() {
			d.Problem(yamlfile.Place{Line: p.Line, Column: 1}, "", fmt.Sprintf("%d errors: the file was not read from here on", MaxErrors))
			break
		}
		d.piece(p)
	}
	d.finish()
	return d.file, d.Errs
}

// exampleKey is what the first line of a limits file may be.
const exampleKey = "service: payments"

// decoder gathers what a file says, and what is wrong with it.
type decoder struct {
	yamlfile.Decoder
	file *File
	seen map[string]yamlfile.Place // keys of the file so far

	list  string // the key whose items the item pieces are; "" refuses them
	items int    // of that list so far
}

func (d *decoder) piece(p yamlfile.Piece) {
	if p.Kind == yamlfile.BadPiece {
		d.Fail(yamlfile.Place{Line: p.Line, Column: p.Column}, "", p.Found, p.Expected)
		return
	}
	if p.Kind == yamlfile.ItemPiece && d.list == "" {
		return // the list was refused as a whole
	}
	if c := p.Text[0]; c == '{' || c == '[' {
		d.Fail(yamlfile.Place{Line: p.Line, Column: 1}, "", "a value in brackets", "keys at the start of the line, such as \"service: payments\"")
		return
	}
	n, bad := p.Parse()
	if bad != nil {
		bad.File = d.File
		d.Errs = append(d.Errs, bad)
		if p.Kind != yamlfile.ItemPiece {
			d.list = ""
			d.seen[p.LeadingWord()] = yamlfile.Place{Line: p.Line, Column: 1} // it is there, though wrong
		}
		return
	}
	if p.Kind == yamlfile.ItemPiece {
		d.itemPiece(n)
		return
	}
	d.keyPiece(n, p.Kind == yamlfile.ListPiece)
}

func (d *decoder) itemPiece(n *yamlfile.Node) {
	if n.Kind != yamlfile.List || len(n.Items) != 1 {
		d.Fail(n.Place, d.list, n.Describe(), `one item behind "- "`)
		return
	}
	d.item(n.Items[0])
}

// keyPiece takes a key of the file. With follows its list comes in pieces.
func (d *decoder) keyPiece(n *yamlfile.Node, follows bool) {
	d.list, d.items = "", 0
	if n.Kind != yamlfile.Mapping {
		d.Fail(n.Place, "", n.Describe(), `keys with values, such as "service: payments"`)
		return
	}
	lists := func(key string) func(*yamlfile.Node, string) {
		return func(v *yamlfile.Node, path string) { d.wholeList(v, key, follows) }
	}
	d.Keys(n, "", d.seen, yamlfile.Fields{
		"service": d.service,
		"owner": func(v *yamlfile.Node, path string) {
			d.file.Service.Owner, d.file.owner = d.Name(v, path, ownerName), v.Place
		},
		"enforce": func(v *yamlfile.Node, path string) {
			word := d.Word(v, path, "inbound", "outbound")
			if d.file.enforce = v.Place; word == "outbound" {
				d.file.Service.Enforce = limiter.Outbound
			}
		},
		"routes":  lists("routes"),
		"exempt":  lists("exempt"),
		"buckets": lists("buckets"),
	})
}

func (d *decoder) service(v *yamlfile.Node, path string) {
	d.file.Service.Name, d.file.service = d.Name(v, path, yamlfile.ServiceName), v.Place
}

// wholeList takes a list that is written behind its key; one that follows in
// pieces it only opens.
func (d *decoder) wholeList(v *yamlfile.Node, key string, follows bool) {
	d.list = key
	if follows {
		return
	}
	if v.Kind != yamlfile.List {
		d.Fail(v.Place, key, v.Describe(), "a list")
		d.list = ""
		return
	}
	for _, item := range v.Items {
		d.item(item)
	}
}

// item takes one item of the open list.
func (d *decoder) item(n *yamlfile.Node) {
	path := fmt.Sprintf("%s[%d]", d.list, d.items)
	d.items++
	most := MaxListItems
	if d.list == "buckets" {
		most = MaxBuckets
	}
	if d.items > most {
		d.Fail(n.Place, d.list, fmt.Sprintf("more than %d", most), fmt.Sprintf("at most %d", most))
		d.list = ""
		return
	}
	switch d.list {
	case "routes":
		if route, ok := d.route(n, path); ok {
			d.file.Service.Routes = append(d.file.Service.Routes, route)
			d.file.routes = append(d.file.routes, item{n.Place, d.items - 1})
		}
	case "exempt":
		if m, ok := d.match(n, path); ok {
			d.file.Service.Exempt = append(d.file.Service.Exempt, m)
		}
	case "buckets":
		if b, ok := d.bucket(n, path); ok {
			d.file.Service.Buckets = append(d.file.Service.Buckets, b)
			d.file.buckets = append(d.file.buckets, item{n.Place, d.items - 1})
		}
	}
}

// finish notes what a whole file must have, and names the buckets' service.
func (d *decoder) finish() {
	if _, ok := d.seen["service"]; !ok && !d.Full() {
		found := `no key "service"`
		if len(d.seen) == 0 && len(d.Errs) == 0 {
			found = "an empty file"
		}
		d.Fail(yamlfile.Place{Line: 1, Column: 1}, "", found, `the service that the file limits, as "service: payments"`)
	}
	for i := range d.file.Service.Buckets {
		d.file.Service.Buckets[i].Service = d.file.Service.Name
	}
}
