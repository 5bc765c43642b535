package desk

import (
	"fmt"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

// merging is one service in three ways: as it was at the base, as it is, and as
// it is asked to be. Each may be nil, which is a service that is not there.
type merging struct {
	service          string
	base, head, ours *document
	// outranked are the items in which ours wins over what the head changed.
	outranked map[string]bool
	// owed has what the files said when they were last applied where that was
	// not what the base revision says.
	owed owed
}

// merged is what comes of it.
type merged struct {
	document *document // nil: no such service
	// kept are the items that stay as in head although ours has them otherwise,
	// clashes those that both changed otherwise.
	kept, clashes []string
}

// merge takes what ours changed since the base, and else what the head has.
func (m merging) merge() (merged, error) {
	if m.ours.equal(m.head) {
		return merged{document: m.head}, nil
	}
	base, head, ours := itemsOf(m.base), itemsOf(m.head), itemsOf(m.ours)
	if m.base.equal(m.head) && !m.owes(base, ours) {
		return merged{document: m.ours}, nil
	}
	var out merged
	result := items{}
	for _, key := range keys(base, head, ours) {
		switch {
		case ours[key] == head[key] || !m.changedOurs(key, base, ours):
			result[key] = head[key]
			if ours[key] != head[key] {
				out.kept = append(out.kept, key)
			}
		case m.changedTheirs(key, base, head) && !m.outranked[key]:
			out.clashes = append(out.clashes, key)
		default:
			result[key] = ours[key]
		}
	}
	if len(out.clashes) > 0 {
		return out, nil
	}
	if result[m.service] == "" && hasBucket(result) {
		out.clashes = []string{m.service} // removed by one, added to by the other
		return out, nil
	}
	var err error
	out.document, err = m.assemble(result, head, ours)
	return out, err
}

func hasBucket(m items) bool {
	for key, text := range m {
		if isBucket(key) && text != "" {
			return true
		}
	}
	return false
}

// owes reports whether an item is owed to the files.
func (m merging) owes(of ...items) bool {
	for _, key := range keys(of...) {
		if _, ok := m.owed.of(key); ok {
			return true
		}
	}
	return false
}

func (m merging) changedOurs(key string, base, ours items) bool {
	if was, ok := m.owed.of(key); ok {
		return markOf(ours[key]) != was
	}
	return ours[key] != base[key]
}

func (m merging) changedTheirs(key string, base, head items) bool {
	if was, ok := m.owed.of(key); ok {
		return markOf(head[key]) != was
	}
	return head[key] != base[key]
}

// assemble makes a service of items of two others. The whole is checked anew:
// two changes that hold by themselves need not hold together.
func (m merging) assemble(result, head, ours items) (*document, error) {
	if result[m.service] == "" {
		return nil, nil
	}
	var s limiter.Service
	from := m.ours
	if result[m.service] != ours[m.service] {
		from = m.head
	}
	s = *from.service
	s.Buckets = nil
	s.Buckets = pick(s.Buckets, m.head, func(key string) bool { return head[key] == result[key] })
	s.Buckets = pick(s.Buckets, m.ours, func(key string) bool { return ours[key] == result[key] && head[key] != result[key] })
	doc := newDocument(s)
	if _, err := limitsfile.Load([]limitsfile.Source{{Name: fmt.Sprintf("%s, merged with what was changed meanwhile", m.service), Data: doc.text}}); err != nil {
		return nil, invalidFiles(err)
	}
	return doc, nil
}

func pick(into []limiter.Bucket, doc *document, wanted func(key string) bool) []limiter.Bucket {
	if doc == nil {
		return into
	}
	for _, b := range doc.service.Buckets {
		if wanted(b.FullName()) {
			into = append(into, b)
		}
	}
	return into
}
