package changes_test

import (
	"strings"
	"testing"

	grlv1 "grl/proto/grl/v1"
	"grl/web/changes"
	"grl/web/page"
	"grl/web/pagetest"
)

// BenchmarkPage is the page over 20,000 entries of 2 kB each: the newest, a search
// that looks through as many as it may, and one that is open.
func BenchmarkPage(b *testing.B) {
	item := "# payments/writes\nname: writes\nmatch: {procedure: \"payments.v1.Charges/*\"}\nlimit: {rps: 100}\nbehavior: deny\n"
	entries := manyEntries(20_000, func(e *grlv1.AuditEntry) {
		e.Action, e.Subjects, e.Revision = "apply", []string{"payments/writes"}, e.GetNumber()
		e.Before, e.After = item+strings.Repeat("x", 800), strings.Replace(item, "100", "110", 1)+strings.Repeat("x", 800)
	})
	site := pagetest.Site(pagetest.Memory{})
	site.Services = page.Services{Audit: kept{entries: entries, byNumber: true}}
	handler := pagetest.Handler(changes.Routes(site))
	for _, target := range []string{"/changes", "/changes?q=nothing", "/changes?what=behavior", "/changes?open=20000"} {
		b.Run(target, func(b *testing.B) {
			for b.Loop() {
				pagetest.Get(b, handler, pagetest.Admin, target, false)
			}
		})
	}
}
