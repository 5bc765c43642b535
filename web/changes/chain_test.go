package changes_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/changes"
	"grl/web/page"
	"grl/web/pagetest"
)

// kept is an audit that holds its entries, the newest first.
type kept struct {
	grlv1connect.UnimplementedAuditServiceHandler
	entries  []*grlv1.AuditEntry
	read     *int // how many were read
	byNumber bool // they have no gaps, so that one is found by its number
}

// ListAudit returns a page of them.
func (k kept) ListAudit(_ context.Context, r *grlv1.ListAuditRequest) (*grlv1.ListAuditResponse, error) {
	out := &grlv1.ListAuditResponse{}
	entries := k.entries
	if n := len(entries); k.byNumber && r.GetBefore() > 0 {
		entries = entries[min(n, max(0, n+1-int(r.GetBefore()))):]
	}
	for _, e := range entries {
		if len(out.Entries) == int(r.GetPageSize()) {
			break
		}
		if r.GetBefore() == 0 || e.GetNumber() < r.GetBefore() {
			out.Entries = append(out.Entries, e)
		}
	}
	if k.read != nil {
		*k.read += len(out.Entries)
	}
	return out, nil
}

// pageOf returns the page over an audit, and its status.
func pageOf(t *testing.T, services page.Services, target string) (status int, body string) {
	t.Helper()
	site := pagetest.Site(pagetest.Memory{})
	site.Services = services
	r, body := pagetest.Get(t, pagetest.Handler(changes.Routes(site)), pagetest.Admin, target, false)
	return r.StatusCode, body
}

// chainOf returns the text of the page after such a check of the audit.
func chainOf(t *testing.T, check page.AuditCheck) string {
	t.Helper()
	_, body := pageOf(t, page.Services{Audit: kept{}, Audited: func() page.AuditCheck { return check }}, "/changes")
	return plain(body)
}

// manyEntries are n entries, one an hour.
func manyEntries(n int, edit func(*grlv1.AuditEntry)) []*grlv1.AuditEntry {
	now := time.Now()
	var all []*grlv1.AuditEntry
	for i := range n {
		e := &grlv1.AuditEntry{
			Number: uint64(n - i), AtMs: now.Add(-time.Duration(i) * time.Hour).UnixMilli(), Actor: "ann", From: "127.0.0.1", Action: "note",
			Subjects: []string{"x"}, Reason: fmt.Sprintf("reason-%d.", n-i), Hash: make([]byte, 32),
		}
		if edit != nil {
			edit(e)
		}
		all = append(all, e)
	}
	return all
}

// TestSince: by the time of entries, which is as far as is read.
func TestSince(t *testing.T) {
	for _, tt := range []struct {
		since    string
		has, not int // numbers of entries
		read     int // at most
	}{
		{"day", 1000, 970, 200},
		{"week", 960, 830, 300},
		{"month", 951, 100, 1000},
		{"", 951, 1, 300},
	} {
		read := 0
		_, body := pageOf(t, page.Services{Audit: kept{entries: manyEntries(1000, nil), read: &read}}, "/changes?since="+tt.since)
		if !strings.Contains(body, fmt.Sprintf("reason-%d.", tt.has)) || strings.Contains(body, fmt.Sprintf("reason-%d.", tt.not)) || read > tt.read {
			t.Errorf("since %q: has %d: %v, has %d: %v, read %d, at most %d", tt.since, tt.has, strings.Contains(body, fmt.Sprintf("reason-%d.", tt.has)), tt.not, strings.Contains(body, fmt.Sprintf("reason-%d.", tt.not)), read, tt.read)
		}
	}
	_, body := pageOf(t, page.Services{Audit: kept{entries: manyEntries(100, func(e *grlv1.AuditEntry) { e.AtMs -= (48 * time.Hour).Milliseconds() })}}, "/changes?since=day")
	wants(t, "two days later", plain(body), "No change matches", "Clear filters")
}

// TestLooksSoFar: what is rare is looked for in parts, each of which leads to the
// next one.
func TestLooksSoFar(t *testing.T) {
	read := 0
	entries := manyEntries(7000, nil)
	target := "/changes?q=reason-42."
	for pages := range 5 {
		before := read
		_, body := pageOf(t, page.Services{Audit: kept{entries: entries, read: &read}}, target)
		if read-before > 3100 {
			t.Fatalf("%d entries read for one page", read-before)
		}
		if strings.Contains(body, "reason-42.</bdi>") {
			if pages != 2 {
				t.Errorf("found on page %d, want 3", pages+1)
			}
			return
		}
		wants(t, "in vain", plain(body), "No change here matches", "Look further back", "Looked through 3,000 entries.")
		next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body)
		if next == nil {
			t.Fatalf("no way further: %s", plain(body))
		}
		target = html.UnescapeString(next[1])
	}
	t.Error("not found")
}

// TestHostile: names and texts that would be markup, turn the writing direction or
// go on for ever stay text, and the page stays small.
func TestHostile(t *testing.T) {
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, "\u202egnp.exe", "\x00\x1b[31m", `</td></tr></table>`,
		strings.Repeat("w", 250), "a/" + strings.Repeat("b", 250), `policy "><svg onload=alert(1)>`, `run ' onclick='x`,
	}
	i := 0
	entries := manyEntries(60, func(e *grlv1.AuditEntry) {
		name := hostile[i%len(hostile)]
		i++
		e.Actor, e.From, e.Reason, e.RequestId, e.Subjects = name, name, name, name, []string{name}
		e.Action = []string{"apply", "policy.apply", "cap.place", "refused.apply", name, "rlc.run"}[i%6]
		e.Revision = uint64(i)
		e.Before, e.After = strings.Repeat(name+"\n", 200), strings.Repeat("+"+name+"\n", 200)
	})
	for _, target := range []string{"/changes", "/changes?open=60", "/changes?open=55", "/changes?q=%3Cscript%3E&who=%22%3E%3Cb%3E&subject=%3Ci%3E"} {
		status, body := pageOf(t, page.Services{Audit: kept{entries: entries}}, target)
		if status != http.StatusOK || len(body) > 300<<10 {
			t.Errorf("%s: status %d, %d bytes", target, status, len(body))
		}
		lacks(t, target, body, "<script>alert", "<img src", "<svg onload", "onclick='x", "</table></td>", `href="javascript:`, "\u202e", "\x1b", "\x00", `"><b>`, "<i>")
	}
}

// TestRefusedByARail: as drawn, with what it would have changed and why not.
func TestRefusedByARail(t *testing.T) {
	entries := manyEntries(1, func(e *grlv1.AuditEntry) {
		e.Action, e.Subjects = "refused.apply", []string{"identity/login"}
		e.Before = "# identity/login\nname: login\nlimit: {rps: 2180}\nbehavior: deny\n"
		e.After = "# refused: identity/login is below half of the peak\n# refused: identity/login drops\n# identity/login\nname: login\nlimit: {rps: 700}\nbehavior: deny\n"
	})
	for _, target := range []string{"/changes", "/changes?what=refused"} {
		_, body := pageOf(t, page.Services{Audit: kept{entries: entries}}, target)
		wants(t, target, plain(body), "refused identity/ login limit 2,180 → 700 Refused is below half of the peak and 1 more reason")
	}
	_, body := pageOf(t, page.Services{Audit: kept{entries: entries}}, "/changes?what=limits")
	lacks(t, "limits alone", plain(body), "identity/")
}
