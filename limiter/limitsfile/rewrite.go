package limitsfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

// Rewrite returns those of files that must change for the service of that name
// to be want, with the fewest edits: lines of keys that stay as they are, and
// comments, order, quotes and line ends, stay byte for byte. files are all files
// of a directory; only those of the service are read. A bucket that goes takes the comment directly above
// it along; a new one comes last in the file that has most of the service's
// buckets. A service without files gets one, SERVICE.yaml.
//
// What is returned was read again and says want. If that cannot be had, as where
// want does not hold by itself, there is an error and nothing is returned.
func Rewrite(files []Source, want limiter.Service) (changed []Source, err error) {
	defer func() {
		if r := recover(); r != nil {
			changed, err = nil, errPlace
		}
		if err != nil {
			err = fmt.Errorf("rewrite limits of %s: %w", yamlfile.Quote(want.Name), err)
		}
	}()
	wanted := Normalize(want)
	if _, err := Load([]Source{{Name: want.Name, Data: wanted}}); err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(files), func(s Source) bool { return !isOf(s.Data, want.Name) })
	if len(own) == 0 {
		return []Source{{freeName(files, want.Name), wanted}}, nil
	}
	services, err := Load(own)
	if err != nil {
		return nil, err
	}
	changed = rewrite(own, services[0], want)
	if err := check(own, changed, wanted); err != nil {
		return nil, err
	}
	return changed, nil
}

// isOf reports whether a file limits the service. It is quick where it does not.
func isOf(data []byte, service string) bool {
	if !bytes.Contains(data, []byte(service)) && !bytes.Contains(data, []byte(`\`)) {
		return false
	}
	for p := range yamlfile.Pieces(data, exampleKey) {
		if p.LeadingWord() != "service" {
			continue
		}
		n, bad := p.Parse()
		return bad == nil && valueOf(n, "service") != nil && valueOf(n, "service").Text == service
	}
	return false
}

// freeName returns a name for a service's file that no file has.
func freeName(files []Source, service string) string {
	name := service + ".yaml"
	for i := 2; slices.ContainsFunc(files, func(s Source) bool { return strings.EqualFold(s.Name, name) }); i++ {
		name = fmt.Sprintf("%s-%d.yaml", service, i)
	}
	return name
}

// check returns an error unless the service's files say what is wanted once the
// changed ones are in their places.
func check(files, changed []Source, wanted []byte) error {
	after := slices.Clone(files)
	for _, c := range changed {
		after[slices.IndexFunc(after, func(s Source) bool { return s.Name == c.Name })] = c
	}
	services, err := Load(after)
	if err != nil {
		return err
	}
	if len(services) != 1 || !bytes.Equal(Normalize(services[0]), wanted) {
		return errors.New("the text would say something else")
	}
	return nil
}

// rewriter rewrites the files of one service.
type rewriter struct {
	sources []Source
	texts   []*text
	roots   []*yamlfile.Node
	main    int            // the file that has most buckets
	cur     *yamlfile.Node // the service as it is, in canonical form
	want    *yamlfile.Node // and as it shall be
}

func rewrite(files []Source, cur, want limiter.Service) (changed []Source) {
	r := rewriter{cur: tree(Normalize(cur)), want: tree(Normalize(want))}
	most := -1
	for _, s := range files {
		root := tree(s.Data)
		if n := len(itemsOf(root, "buckets")); n > most {
			most, r.main = n, len(r.texts)
		}
		r.sources, r.texts, r.roots = append(r.sources, s), append(r.texts, newText(s.Data)), append(r.roots, root)
	}
	r.key("owner")
	r.key("enforce")
	r.list("routes")
	r.list("exempt")
	r.buckets(want)
	for i, t := range r.texts {
		if len(t.edits) > 0 {
			changed = append(changed, Source{r.sources[i].Name, t.edited()})
		}
	}
	return changed
}

// tree returns what a file that holds says.
func tree(data []byte) *yamlfile.Node {
	var d yamlfile.Decoder
	return d.ReadFile(data, MaxFileBytes, exampleKey)
}

// pairOf returns the pair of a key; nil: n has no such key.
func pairOf(n *yamlfile.Node, key string) *yamlfile.Pair {
	if n == nil {
		return nil
	}
	for i := range n.Pairs {
		if n.Pairs[i].Key.Text == key {
			return &n.Pairs[i]
		}
	}
	return nil
}

// valueOf returns the value of a key; nil: n has no such key.
func valueOf(n *yamlfile.Node, key string) *yamlfile.Node {
	if p := pairOf(n, key); p != nil {
		return p.Value
	}
	return nil
}

func itemsOf(n *yamlfile.Node, key string) []*yamlfile.Node {
	if v := valueOf(n, key); v != nil {
		return v.Items
	}
	return nil
}

// key rewrites a key of the service with one word in all files that have it.
func (r *rewriter) key(key string) {
	cur, want := valueOf(r.cur, key), valueOf(r.want, key)
	if flow(cur) == flow(want) {
		return
	}
	found := false
	for i, root := range r.roots {
		p := pairOf(root, key)
		switch {
		case p == nil:
		case want == nil:
			r.texts[i].removePair(p)
		default:
			r.texts[i].setValue(p, want)
		}
		found = found || p != nil
	}
	if !found {
		r.add(key + ": " + flow(want))
	}
}

// add gives the main file a key of the service, behind the one that names it.
func (r *rewriter) add(lines string) {
	t := r.texts[r.main]
	t.insertLines(t.line(t.end(valueOf(r.roots[r.main], "service"))), lines+"\n")
}

// list rewrites a list of the service whose order does not matter.
func (r *rewriter) list(key string) {
	if flow(valueOf(r.cur, key)) == flow(valueOf(r.want, key)) {
		return
	}
	missing := flows(itemsOf(r.want, key))
	for _, root := range r.roots {
		missing = without(missing, flows(itemsOf(root, key)))
	}
	for i, root := range r.roots {
		p := pairOf(root, key)
		if p == nil || len(p.Value.Items) == 0 {
			continue
		}
		switch {
		case r.texts[i].changeSet(p.Value, itemsOf(r.want, key), missing):
		case len(missing) > 0:
			r.texts[i].setText(p, "["+strings.Join(missing, ", ")+"]")
		default:
			r.texts[i].removePair(p)
		}
		missing = nil
	}
	if len(missing) == 0 {
		return
	}
	if p := pairOf(r.roots[r.main], key); p != nil && len(p.Value.Items) == 0 {
		r.texts[r.main].setText(p, "["+strings.Join(missing, ", ")+"]")
		return
	}
	r.add(key + ":\n  - " + strings.Join(missing, "\n  - "))
}

// buckets rewrites the buckets.
func (r *rewriter) buckets(want limiter.Service) {
	cur, next := byName(itemsOf(r.cur, "buckets")), byName(itemsOf(r.want, "buckets"))
	var added []limiter.Bucket
	for _, b := range canonical(want).Buckets {
		if cur[b.Name] == nil {
			added = append(added, b)
		}
	}
	for i, root := range r.roots {
		t, here := r.texts[i], []limiter.Bucket(nil)
		if i == r.main {
			here = added
		}
		p := pairOf(root, "buckets")
		if p == nil {
			if len(here) > 0 {
				t.insertLines(len(t.lines)-2, "buckets:\n"+bucketLines(here, 2))
			}
			continue
		}
		removed := make([]bool, len(p.Value.Items))
		for j, item := range p.Value.Items {
			name := valueOf(item, "name").Text
			if removed[j] = next[name] == nil; !removed[j] && !t.changePairs(item, cur[name], next[name]) {
				panic(errPlace)
			}
		}
		t.changeBuckets(p, removed, here)
	}
}

func byName(items []*yamlfile.Node) map[string]*yamlfile.Node {
	m := make(map[string]*yamlfile.Node, len(items))
	for _, item := range items {
		m[valueOf(item, "name").Text] = item
	}
	return m
}

// bucketLines writes buckets as items of a list whose dashes are indented so
// far.
func bucketLines(buckets []limiter.Bucket, indent int) string {
	var w writer
	for i := range buckets {
		w.bucket(&buckets[i])
	}
	var out strings.Builder
	for line := range strings.Lines(w.String()) {
		out.WriteString(strings.Repeat(" ", indent) + line[2:])
	}
	return out.String()
}

// changeBuckets takes buckets away and adds others.
func (t *text) changeBuckets(p *yamlfile.Pair, removed []bool, added []limiter.Bucket) {
	list := p.Value
	left := len(added)
	for _, gone := range removed {
		if !gone {
			left++
		}
	}
	switch {
	case len(added) == 0 && !slices.Contains(removed, true):
	case t.isFlow(list) || len(list.Items) == 0:
		t.changeFlowBuckets(p, removed, added)
	default:
		if left == 0 {
			t.insert(t.colon(p)+1, " []")
		}
		for i, item := range list.Items {
			if removed[i] {
				first := t.dashLine(item)
				for first > 0 && t.isComment(first-1) && t.indent(first-1) <= t.indent(first) {
					first--
				}
				t.removeLines(first, t.line(t.end(item)))
			}
		}
		if len(added) > 0 {
			t.appendBuckets(list.Items, added)
		}
	}
}

// appendBuckets adds buckets behind the last one, with a blank line before each
// if it has one.
func (t *text) appendBuckets(items []*yamlfile.Node, added []limiter.Bucket) {
	last := items[len(items)-1]
	dash, line := t.dashLine(last), t.line(t.end(last))
	indent := t.indent(dash)
	for line+1 < len(t.lines)-1 && t.isComment(line+1) && t.indent(line+1) > indent {
		line++ // it belongs to that bucket
	}
	above := dash - 1
	for above > 0 && t.isComment(above) {
		above--
	}
	if len(items) == 1 || len(t.body(above)) > 0 {
		t.insertLines(line, bucketLines(added, indent))
		return
	}
	var lines string
	for i := range added {
		lines += "\n" + bucketLines(added[i:i+1], indent)
	}
	t.insertLines(line, lines)
}

// changeFlowBuckets is changeBuckets where they are in brackets, or there are
// none.
func (t *text) changeFlowBuckets(p *yamlfile.Pair, removed []bool, added []limiter.Bucket) {
	list := p.Value
	kept := slices.Index(removed, false)
	switch {
	case kept >= 0:
		anchor := len(removed) - 1
		for removed[anchor] {
			anchor--
		}
		var more []addition
		for i := range added {
			more = append(more, addition{anchor, flow(bucketNode(added[i]))})
		}
		t.changeFlow(t.itemSpans(list), removed, more)
	case len(added) == 0:
		t.setText(p, "[]")
	default:
		end := t.end(list)
		t.replace(t.colon(p)+1, end, "")
		t.insertLines(t.line(end-1), bucketLines(added, 2))
	}
}

// bucketNode returns a bucket in canonical form.
func bucketNode(b limiter.Bucket) *yamlfile.Node {
	return tree(Normalize(limiter.Service{Name: "s", Buckets: []limiter.Bucket{b}})).Pairs[1].Value.Items[0]
}
