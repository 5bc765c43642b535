package yamlfile

import "fmt"

// ReadFile reads a whole file, of at most so many bytes, as one mapping. What
// cannot be read is noted in d.Errs, and the rest is returned. The example of a
// key and its value is for errors.
func (d *Decoder) ReadFile(data []byte, most int, example string) *Node {
	file := &fileReader{Decoder: d, example: example, file: &Node{Place: Place{1, 1}, Kind: Mapping}}
	if bad := Scan(d.File, data, most); len(bad) > 0 {
		d.Errs = append(d.Errs, bad...)
		return file.file
	}
	for p := range Pieces(data, example) {
		if d.Full() {
			d.Problem(Place{p.Line, 1}, "", fmt.Sprintf("%d errors: the file was not read from here on", MaxErrors))
			break
		}
		file.piece(p)
	}
	return file.file
}

// fileReader puts the pieces of a file together again.
type fileReader struct {
	*Decoder
	example string
	file    *Node
	list    *Node // that the item pieces belong to; nil: their key was refused
}

func (r *fileReader) piece(p Piece) {
	if p.Kind == BadPiece {
		r.Fail(Place{p.Line, p.Column}, "", p.Found, p.Expected)
		return
	}
	if p.Kind == ItemPiece && r.list == nil {
		return
	}
	if c := p.Text[0]; c == '{' || c == '[' {
		r.Fail(Place{p.Line, 1}, "", "a value in brackets", keysAtStart(r.example))
		return
	}
	n, bad := p.Parse()
	switch {
	case bad != nil:
		bad.File = r.File
		r.Errs = append(r.Errs, bad)
		if p.Kind != ItemPiece {
			r.list = nil
			key := &Node{Place: Place{p.Line, 1}, Kind: Plain, Text: p.LeadingWord()}
			r.file.Pairs = append(r.file.Pairs, Pair{Key: key})
		}
	case p.Kind == ItemPiece:
		r.item(n)
	case n.Kind != Mapping:
		r.list = nil
		r.Fail(n.Place, "", n.Describe(), fmt.Sprintf("keys with values, such as %q", r.example))
	default:
		r.keys(n, p.Kind == ListPiece)
	}
}

func (r *fileReader) item(n *Node) {
	if n.Kind != List || len(n.Items) != 1 {
		r.Fail(n.Place, "", n.Describe(), `one item behind "- "`)
		return
	}
	r.list.Items = append(r.list.Items, n.Items[0])
}

// keys takes keys of the file. With follows the list of the last one comes in
// pieces.
func (r *fileReader) keys(n *Node, follows bool) {
	r.list = nil
	r.file.Pairs = append(r.file.Pairs, n.Pairs...)
	if follows {
		r.list = n.Pairs[len(n.Pairs)-1].Value
		r.list.Kind = List
	}
}
