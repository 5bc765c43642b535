package buckets

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"grl/limiter"
	"grl/web/page"
	"grl/web/pagetest"

	"pgregory.net/rapid"
)

func TestFind(t *testing.T) {
	tests := []struct {
		query string
		want  string // names in order, each with its instance
	}{
		{"", "rebuild writes images each-caller suggest@eu suggest@us"},
		{"q=CHARGES", "writes"},
		{"q=checkout", "each-caller"},
		{"q=payments/wri", "writes"},
		{"q=search+web", "suggest@eu suggest@us"},
		{"q=search+us", "suggest@us"}, // each word must occur
		{"q=team-payments", "writes each-caller"},
		{"q=nothing", ""},
		{"state=over", "writes"},
		{"state=near", "suggest@eu"},
		{"state=enforced", "images suggest@us"},
		{"state=shadow", "each-caller"},
		{"state=blocked", "rebuild"},
		{"scope=region", "suggest@eu suggest@us"},
		{"scope=zone&state=enforced", "images"},
		{"sort=name", "images each-caller writes rebuild suggest@eu suggest@us"},
		{"sort=-name", "suggest@us suggest@eu rebuild writes each-caller images"},
		{"sort=offered", "rebuild images each-caller writes suggest@eu suggest@us"},
		{"sort=-limit&state=enforced", "suggest@us images"},
		{"sort=-virtual", "each-caller images writes rebuild suggest@eu suggest@us"},
		{"sort=-state", "rebuild writes suggest@eu each-caller images suggest@us"},
		{"sort=scope", "each-caller writes rebuild suggest@eu suggest@us images"},
		{"sort=owner&scope=global", "rebuild each-caller writes"},
		{"service=payments", "writes each-caller"},
		{"service=pay", ""},
		{"owner=team-search&sort=name", "suggest@eu suggest@us"},
		{"behavior=allow", "each-caller"},
		{"behavior=deny&service=payments", "writes"},
		{"caller=checkout", "each-caller"},
		{"caller=web&sort=name", "suggest@eu suggest@us"},
		{"procedure=payments.v1.Charges/Create", "writes"}, // a prefix of it
		{"procedure=search.v2.Index/Rebuild", "rebuild"},
		{"procedure=other", ""},
		{"state=capped", ""},
		{"state=bogus&sort=bogus&scope=bogus", "rebuild writes images each-caller suggest@eu suggest@us"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			cells := someCells()
			var got []string
			q := parseQuery(mustValues(t, tt.query))
			found := q.find(cells)
			for _, i := range q.window(found, 0, len(found), cells) {
				name := cells[i].Name
				if cells[i].Instance != "" && cells[i].Scope == limiter.Region {
					name += "@" + cells[i].Instance
				}
				got = append(got, name)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("found %q, want %q", s, tt.want)
			}
		})
	}
}

// someCells are those of pagetest with what they select.
func someCells() []page.Cell {
	cells := pagetest.Cells()
	for i, m := range []limiter.Match{
		{Procedure: "payments.v1.Charges/*"},
		{Caller: "*"},
		{Caller: "web", Procedure: "search.v2.Suggest/Query"},
		{Caller: "web", Procedure: "search.v2.Suggest/Query"},
		{Procedure: "search.v2.Index/Rebuild"},
		{Procedure: "GET /images/{id}"},
	} {
		cells[i].Selects = m
	}
	return cells
}

func mustValues(t *testing.T, query string) url.Values {
	t.Helper()
	v, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What a URL says is what its query prints again, whatever the URL.
func TestQueryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := url.Values{}
		for _, key := range []string{"q", "state", "scope", "behavior", "service", "owner", "caller", "procedure", "sort", "page", "rows"} {
			known := []string{"", "over", "shadow", "zone", "global", "-ratio", "ratio", "-offered", "name", "deny", "0", "1", "7", "50", "51", "-3"}
			if rapid.Bool().Draw(t, key+" known") {
				v.Set(key, rapid.SampledFrom(known).Draw(t, key))
			} else {
				v.Set(key, rapid.String().Draw(t, key))
			}
		}
		q := parseQuery(v)
		u, err := url.Parse(q.url())
		if err != nil {
			t.Fatalf("url() = %q: %v", q.url(), err)
		}
		if again := parseQuery(u.Query()); again != q {
			t.Fatalf("%+v prints %q, which reads %+v", q, q.url(), again)
		}
	})
}

func TestSortedBy(t *testing.T) {
	tests := []struct {
		sort, key, want string
	}{
		{"", "ratio", "ratio"}, // is the default, so the other way
		{"ratio", "ratio", ""},
		{"", "offered", "-offered"},
		{"-offered", "offered", "offered"},
		{"", "name", "name"},
		{"name", "name", "-name"},
	}
	for _, tt := range tests {
		if got := (query{Sort: tt.sort, Page: 3}).sortedBy(tt.key); got != (query{Sort: tt.want}) {
			t.Errorf("sorted by %q, then by %q: %+v, want sort %q on the first page", tt.sort, tt.key, got, tt.want)
		}
	}
}

// The rows of a page are those that sorting everything puts there.
func TestWindowAgreesWithSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := make([]page.Cell, rapid.IntRange(0, 200).Draw(t, "cells"))
		for i := range cells {
			cells[i] = page.Cell{Name: fmt.Sprint(i), OfferedRPS: float64(rapid.IntRange(0, 5).Draw(t, "offered"))}
		}
		q := query{Sort: rapid.SampledFrom([]string{"offered", "-offered", "name", "-name"}).Draw(t, "sort")}
		to := rapid.IntRange(0, len(cells)).Draw(t, "to")
		from := rapid.IntRange(0, to).Draw(t, "from")

		key, descending := q.sort()
		want := q.find(cells)
		slices.SortFunc(want, func(i, j int) int {
			c := sortKeys[key](&cells[i], &cells[j])
			if descending {
				c = -c
			}
			return cmp.Or(c, strings.Compare(cells[i].Name, cells[j].Name))
		})
		if got := q.window(q.find(cells), from, to, cells); !slices.Equal(got, want[from:to]) {
			t.Fatalf("rows %d to %d by %q: %v, want %v", from, to, q.Sort, got, want[from:to])
		}
	})
}

// containsFold agrees with the standard library on what names consist of.
func TestContainsFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[A-Za-z./*→ ]{0,12}`).Draw(t, "s")
		word := rapid.StringMatching(`[a-z./*→]{1,3}`).Draw(t, "word")
		if got, want := containsFold(s, word), strings.Contains(strings.ToLower(s), word); got != want {
			t.Fatalf("containsFold(%q, %q) = %v, want %v", s, word, got, want)
		}
	})
}

func TestNewPager(t *testing.T) {
	tests := []struct {
		total, size, number int
		want                string
		from, to            int
	}{
		{0, 50, 1, "0–0 of 0 [] []", 0, 0},
		{50, 50, 1, "1–50 of 50 [] []", 0, 50},
		{51, 50, 1, "1–50 of 51 [] [2]", 0, 50},
		{51, 50, 2, "51–51 of 51 [1] []", 50, 51},
		{100_000, 50, 2000, "99,951–100,000 of 100,000 [1999] []", 99_950, 100_000},
		{100_000, 50, 9999, "99,951–100,000 of 100,000 [1999] []", 99_950, 100_000},
		{7, 50, -1, "1–7 of 7 [] []", 0, 7},
	}
	for _, tt := range tests {
		p, from, to := page.NewPager(tt.total, tt.size, tt.number, func(n int) string { return fmt.Sprint(n) })
		got := fmt.Sprintf("%s–%s of %s [%s] [%s]", p.From, p.To, p.Of, p.Previous, p.Next)
		if got != tt.want || from != tt.from || to != tt.to {
			t.Errorf("page %d of %d: %q, rows %d to %d; want %q, %d to %d", tt.number, tt.total, got, from, to, tt.want, tt.from, tt.to)
		}
	}
}

// Pages cut the table without gap or overlap.
func TestPagesCoverTheTable(t *testing.T) {
	var cells []page.Cell
	for i := range 125 {
		cells = append(cells, page.Cell{Service: "s", Name: fmt.Sprintf("b%03d", i), LimitRPS: 1})
	}
	var names []string
	for n := 1; n <= 3; n++ {
		for _, r := range newBucketsView(cells, query{Page: n}).Rows {
			names = append(names, r.Label.Name)
		}
	}
	if len(names) != 125 || !slices.IsSorted(names) {
		t.Errorf("three pages hold %d rows, sorted %v; want each of 125 once, in order", len(names), slices.IsSorted(names))
	}
}
