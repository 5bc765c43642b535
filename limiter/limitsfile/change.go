package limitsfile

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"grl/limiter/yamlfile"
)

// flow writes a node on one line; "" for none.
func flow(n *yamlfile.Node) string {
	if n == nil {
		return ""
	}
	switch n.Kind {
	case yamlfile.Mapping:
		parts := make([]string, len(n.Pairs))
		for i, p := range n.Pairs {
			parts[i] = keyText(p.Key.Text) + ": " + flow(p.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yamlfile.List:
		return "[" + strings.Join(flows(n.Items), ", ") + "]"
	case yamlfile.Number, yamlfile.Bool:
		return n.Text
	default:
		return scalar(n.Text)
	}
}

// keyText writes a key; our own ones stand without quotes.
func keyText(key string) string {
	switch key {
	case "hourly_regions", "time_zone", "on_silence":
		return key
	default:
		return scalar(key)
	}
}

func flows(items []*yamlfile.Node) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = flow(sorted(item))
	}
	return out
}

// sorted returns a mapping in the order of its keys, and what is none as it is.
func sorted(n *yamlfile.Node) *yamlfile.Node {
	if n.Kind != yamlfile.Mapping {
		return n
	}
	s := *n
	s.Pairs = slices.Clone(n.Pairs)
	slices.SortFunc(s.Pairs, func(a, b yamlfile.Pair) int { return strings.Compare(a.Key.Text, b.Key.Text) })
	return &s
}

// without returns what list has and gone has not.
func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}

// change rewrites the value of a key that was cur so that it is want: as little
// of it as can be, else all.
func (t *text) change(p *yamlfile.Pair, cur, want *yamlfile.Node) {
	if flow(cur) != flow(want) && !t.changeValue(p.Value, cur, want) {
		t.setValue(p, want)
	}
}

// changeValue reports whether it could rewrite a part of a value; if not, it has
// left it alone.
func (t *text) changeValue(n, cur, want *yamlfile.Node) bool {
	switch {
	case n.Kind == yamlfile.Mapping && cur.Kind == yamlfile.Mapping && want.Kind == yamlfile.Mapping:
		return t.changePairs(n, cur, want)
	case n.Kind != yamlfile.List || cur.Kind != yamlfile.List || want.Kind != yamlfile.List:
		return false
	case want.Items[0].Kind == yamlfile.Number:
		return t.changeNumbers(n, want)
	case want.Items[0].Kind == yamlfile.Mapping:
		return t.changeTiers(n, cur, want)
	default:
		return t.changeSet(n, want.Items, without(flows(want.Items), flows(n.Items)))
	}
}

// changePairs rewrites a mapping key by key. A key that n has and cur has not
// says what holds without it too.
func (t *text) changePairs(n, cur, want *yamlfile.Node) bool {
	for _, p := range cur.Pairs {
		if pairOf(n, p.Key.Text) == nil {
			return false // another word for the same
		}
	}
	hasHours := valueOf(want, "hourly") != nil || valueOf(want, "hourly_regions") != nil
	removed := make([]bool, len(n.Pairs))
	for i, p := range n.Pairs {
		key := p.Key.Text
		removed[i] = valueOf(want, key) == nil && (valueOf(cur, key) != nil || key == "time_zone" && !hasHours)
	}
	anchor := lastKept(removed)
	if anchor < 0 {
		return false
	}
	var added []addition
	for _, p := range want.Pairs {
		i := slices.IndexFunc(n.Pairs, func(q yamlfile.Pair) bool { return q.Key.Text == p.Key.Text })
		if i < 0 {
			added = append(added, addition{anchor, keyText(p.Key.Text) + ": " + flow(p.Value)})
			continue
		}
		anchor = i // what follows in canonical form is added here
		if was := valueOf(cur, p.Key.Text); was != nil {
			t.change(&n.Pairs[i], was, p.Value)
		} else {
			t.setValue(&n.Pairs[i], p.Value)
		}
	}
	spans := make([]span, len(n.Pairs))
	for i := range n.Pairs {
		spans[i] = span{t.start(n.Pairs[i].Key), t.end(n.Pairs[i].Value)}
	}
	if t.isFlow(n) {
		t.changeFlow(spans, removed, added)
	} else {
		t.changeLines(spans, removed, added)
	}
	return true
}

// lastKept returns the index of the last one that is not removed; -1: none.
func lastKept(removed []bool) int {
	for i := len(removed) - 1; i >= 0; i-- {
		if !removed[i] {
			return i
		}
	}
	return -1
}

// changeNumbers rewrites those numbers of a list that are others.
func (t *text) changeNumbers(n, want *yamlfile.Node) bool {
	if len(n.Items) != len(want.Items) {
		return false
	}
	for i, item := range n.Items {
		if !sameNumber(item.Text, want.Items[i].Text) {
			t.replace(t.start(item), t.end(item), want.Items[i].Text)
		}
	}
	return true
}

// changeSet rewrites a list whose order does not matter: what is not wanted goes,
// and what is missing is added.
func (t *text) changeSet(n *yamlfile.Node, want []*yamlfile.Node, missing []string) bool {
	wanted := flows(want)
	removed := make([]bool, len(n.Items))
	for i, item := range flows(n.Items) {
		removed[i] = !slices.Contains(wanted, item)
	}
	anchor := lastKept(removed)
	if anchor < 0 {
		return false
	}
	var added []addition
	for _, item := range missing {
		added = append(added, addition{anchor, item})
	}
	t.changeItems(n, removed, added)
	return true
}

// changeTiers rewrites a list of tiers tier by tier, if those that stay keep
// their order.
func (t *text) changeTiers(n, cur, want *yamlfile.Node) bool {
	was, next := byName(cur.Items), byName(want.Items)
	index := map[string]int{}
	removed := make([]bool, len(n.Items))
	for i, item := range n.Items {
		name := valueOf(item, "name").Text
		index[name], removed[i] = i, next[name] == nil
	}
	anchor := -1
	var added []addition
	for _, item := range want.Items {
		i, stays := index[valueOf(item, "name").Text]
		if !stays && anchor < 0 || stays && i < anchor {
			return false
		}
		if stays {
			anchor = i
		} else {
			added = append(added, addition{anchor, flow(item)})
		}
	}
	for i, item := range n.Items {
		name := valueOf(item, "name").Text
		if removed[i] || flow(was[name]) == flow(next[name]) {
			continue
		}
		if !t.changePairs(item, was[name], next[name]) {
			t.replace(t.start(item), t.end(item), flow(next[name]))
		}
	}
	t.changeItems(n, removed, added)
	return true
}

// span is where a pair or an item stands.
type span struct{ start, end int }

// addition is what comes behind a pair or an item that stays.
type addition struct {
	after int // index
	text  string
}

func (t *text) itemSpans(n *yamlfile.Node) []span {
	spans := make([]span, len(n.Items))
	for i, item := range n.Items {
		spans[i] = span{t.start(item), t.end(item)}
	}
	return spans
}

func (t *text) changeItems(n *yamlfile.Node, removed []bool, added []addition) {
	spans := t.itemSpans(n)
	if t.isFlow(n) {
		t.changeFlow(spans, removed, added)
		return
	}
	for i, item := range n.Items { // with the dash
		line := t.dashLine(item)
		spans[i].start = t.lines[line] + t.indent(line)
	}
	for i := range added {
		added[i].text = "- " + added[i].text
	}
	t.changeLines(spans, removed, added)
}

// changeFlow rewrites what is in brackets; some of it stays.
func (t *text) changeFlow(spans []span, removed []bool, added []addition) {
	for i := 0; i < len(spans); i++ {
		if !removed[i] {
			continue
		}
		first := i
		for i+1 < len(spans) && removed[i+1] {
			i++
		}
		if i+1 < len(spans) {
			t.replace(spans[first].start, spans[i+1].start, "")
		} else {
			t.replace(spans[first-1].end, spans[i].end, "")
		}
	}
	for _, a := range added {
		t.insert(spans[a.after].end, ", "+a.text)
	}
}

// changeLines rewrites what stands on lines of its own; some of it stays.
func (t *text) changeLines(spans []span, removed []bool, added []addition) {
	for i, s := range spans {
		line := t.line(s.start)
		switch first := t.lines[line] + t.indent(line); {
		case !removed[i]:
		case s.start == first:
			t.removeLines(line, t.line(s.end-1))
		default:
			t.removeBehindDash(spans[i:], removed[i:])
		}
	}
	indent := spans[0].start - t.lines[t.line(spans[0].start)]
	for _, a := range added {
		t.insertLines(t.line(spans[a.after].end-1), strings.Repeat(" ", indent)+a.text+"\n")
	}
}

// removeBehindDash takes away the first key of an item, which stands behind the
// dash. The next one takes its place, unless a comment is between them.
func (t *text) removeBehindDash(spans []span, removed []bool) {
	if len(spans) > 1 && !removed[1] && t.skipSpace(spans[0].end) == spans[1].start {
		t.replace(spans[0].start, spans[1].start, "")
		return
	}
	t.replace(t.skipBack(spans[0].start), spans[0].end, "")
}

// removePair takes away a key of the file, or of a mapping with keys on lines of
// their own.
func (t *text) removePair(p *yamlfile.Pair) {
	t.removeLines(t.line(t.start(p.Key)), t.line(t.end(p.Value)-1))
}

// setValue puts want in the place of the value of a key.
func (t *text) setValue(p *yamlfile.Pair, want *yamlfile.Node) {
	if p.Value.Kind == want.Kind && flow(p.Value) == flow(want) {
		return
	}
	t.setText(p, flow(want))
}

func (t *text) setText(p *yamlfile.Pair, value string) {
	n := p.Value
	if isBlock := (n.Kind == yamlfile.Mapping || n.Kind == yamlfile.List) && !t.isFlow(n); isBlock {
		t.replace(t.colon(p)+1, t.end(n), " "+value)
		return
	}
	t.replace(t.start(n), t.end(n), value)
}

// colon returns the offset of the colon behind a key.
func (t *text) colon(p *yamlfile.Pair) int {
	at := t.skip(t.end(p.Key))
	if t.byte(at) != ':' {
		panic(errPlace)
	}
	return at
}

// dashLine returns the line of the dash of an item that stands on lines of its
// own.
func (t *text) dashLine(item *yamlfile.Node) int {
	line := t.line(t.start(item))
	for ; line > 0 && !bytes.HasPrefix(t.body(line), []byte("-")); line-- {
	}
	return line
}

// sameNumber reports whether two numbers that hold are equal.
func sameNumber(a, b string) bool {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return x == y
}

func (t *text) indent(line int) int {
	content := t.content(line)
	return len(content) - len(bytes.TrimLeft(content, " "))
}
