package buckets

import (
	"html"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/web/page"
	"grl/web/pagetest"
)

// body returns the region of a table over some cells.
func body(t *testing.T, cells []page.Cell, query string) string {
	t.Helper()
	_, body := pagetest.Get(t, pagetest.Handler(Routes(pagetest.Site(pagetest.Memory{Rows: cells}))), pagetest.Admin, "/buckets?"+query, true)
	return body
}

func TestChipsTakeOneFilterAway(t *testing.T) {
	got := body(t, someCells(), "state=over&service=payments&owner=team-payments&q=writes&sort=-offered")
	for _, want := range []string{
		`href="/buckets?owner=team-payments&amp;q=writes&amp;service=payments&amp;sort=-offered"`,
		`href="/buckets?owner=team-payments&amp;q=writes&amp;sort=-offered&amp;state=over"`,
		`href="/buckets?q=writes&amp;service=payments&amp;sort=-offered&amp;state=over"`,
		`<a href="/buckets">Clear</a>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
}

func TestSortedColumnsSaySo(t *testing.T) {
	for query, want := range map[string]string{
		"":             `aria-sort="descending"><a href="/buckets?sort=ratio">Drop ratio`,
		"sort=owner":   `aria-sort="ascending"><a href="/buckets?sort=-owner">Owner`,
		"sort=-limit":  `aria-sort="descending"><a href="/buckets?sort=limit">Limit`,
		"sort=virtual": `aria-sort="ascending"><a href="/buckets?sort=-virtual">Virtual drops`,
	} {
		got := body(t, someCells(), query)
		if !strings.Contains(got, want) || strings.Count(got, "aria-sort") != 1 {
			t.Errorf("%q: no %s", query, want)
		}
	}
}

func TestWhatWasMeant(t *testing.T) {
	got := plain(body(t, someCells(), "q=paymnets&state=over&scope=zone"))
	const want = "No bucket matches “paymnets” Did you mean payments (2 buckets)? The filters “Over limit” and “Zone” are also on. Clear filters"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

func plain(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

func TestRowsAreNamedByWhatTheyAre(t *testing.T) {
	cells := someCells()
	cells[1].Class = "gold"
	cells[0].Cap, cells[0].Name = "7", "_cap-7"
	seen := make(map[string]bool)
	for i := range cells {
		r := newBucketRow(&cells[i])
		if seen[r.ID] {
			t.Errorf("two rows are %s", r.ID)
		}
		seen[r.ID] = true
	}
	if l := labelOf(&cells[0]); l.Name != "cap 7" || l.Path != "/caps" {
		t.Errorf("a cap is %+v", l)
	}
	if l := labelOf(&cells[1]); l.For != "checkout, gold" || l.Path != page.BucketPath("payments/each-caller", "", "checkout") {
		t.Errorf("a cell is %+v", l)
	}
	if r := newBucketRow(&cells[2]); r.Scope.Whole != "region eu" {
		t.Errorf("scope %+v", r.Scope)
	}
	if r := newBucketRow(&page.Cell{Owner: strings.Repeat("é", 200), Scope: limiter.Zone}); len(r.Owner.Shown) > shownName+4 || r.Owner.Whole != strings.Repeat("é", 200) || r.Scope.Whole != "zone" {
		t.Errorf("long names: %+v, %+v", r.Owner, r.Scope)
	}
}

func TestSparklinesSayTheirFigures(t *testing.T) {
	v := newBucketsView(someCells(), query{Sort: "name"})
	nan := math.NaN()
	v.draw([][]float64{{nan, 12, 9.5, nan, 1500}, {nan}})
	for i, want := range []string{"Offered load of the last 24 hours, 9.50 to 1,500 rps", "Offered load of the last 24 hours is not known", ""} {
		if got := v.Rows[i].Spark.Label; got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	if s := v.Rows[0].Spark; s.LimitRPS != 3100 || s.Shadow {
		t.Errorf("sparkline of an enforced limit of 3,100: %+v", s)
	}
}

func TestHostileNames(t *testing.T) {
	for _, name := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "\u202eevil", "a\nb\x00c", strings.Repeat("w", 256), "' style='x", "{{.}}", "\xff\xfe"} {
		cells := []page.Cell{{Service: name, Name: name, Owner: name, Match: name, Caller: name, Instance: name, Scope: limiter.Zone, Cap: name}, {Service: "a", Name: "b"}}
		got := body(t, cells, "")
		if strings.Contains(got, "<script") || strings.Contains(got, "<img") || strings.Contains(got, "\u202e") || strings.Count(got, "<tr id=") != 2 {
			t.Errorf("%q became markup:\n%s", name, got)
		}
	}
}

// With 100,000 cells a page takes a moment, whatever is asked.
func BenchmarkView(b *testing.B) {
	cells := make([]page.Cell, 100_000)
	for i := range cells {
		cells[i] = page.Cell{
			Service: "service-" + string(rune('a'+i%26)), Name: strings.Repeat("x", i%9) + time.Duration(i).String(), Owner: "team", LimitRPS: 1, OfferedRPS: float64(i * 31 % 1100),
			Selects: limiter.Match{Caller: "web*", Procedure: "a.v1.B/*"},
		}
	}
	for _, q := range []query{{}, {Sort: "name", Page: 1000}, {Text: "no-such-name"}, {Caller: "web", Procedure: "a.v1.B/C", Owner: "team"}} {
		b.Run(q.url(), func(b *testing.B) {
			for b.Loop() {
				newBucketsView(cells, q)
			}
		})
	}
}
