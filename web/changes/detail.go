package changes

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"

	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// shownLines is how many lines of a difference the page has at most.
const shownLines = 300

// detail is an entry in full.
type detail struct {
	Title    string
	Lines    []diff.Line
	LeftOut  string // "and 300 more lines"; "": none
	Facts    []page.Fact
	Back     string // URL of its roll back, and of what that would do; "": none
	BackName string
}

func newDetail(e *grlv1.AuditEntry) *detail {
	d := &detail{Title: "before → after", Lines: diff.Lines(readable(e.GetBefore()), readable(e.GetAfter()))}
	if makesRevision(e) {
		d.Title = revisionText(e.GetRevision()-1) + " → " + revisionText(e.GetRevision())
		if e.GetRevision() == 1 {
			d.Title = "first revision"
		}
	}
	if more := len(d.Lines) - shownLines; more > 0 {
		d.Lines, d.LeftOut = d.Lines[:shownLines], "and "+format.Plural(more, "more line")
	}
	add := func(name, value string) {
		if value != "" {
			d.Facts = append(d.Facts, page.Fact{Name: name, Value: format.Printable(value)})
		}
	}
	add("Entry", strconv.FormatUint(e.GetNumber(), 10))
	add("Action", e.GetAction())
	add("Reason", e.GetReason())
	add("From", e.GetFrom())
	add("Request", e.GetRequestId())
	if e.GetForced() {
		add("Guard rails", "passed by force")
	}
	add("Hash", hex.EncodeToString(e.GetHash()[:min(len(e.GetHash()), 8)])+"…")
	return d
}

// readable returns the text of an entry, JSON with a line for each field.
func readable(text string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		return text
	}
	return b.String() + "\n"
}
