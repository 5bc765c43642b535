package buckets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"grl/web/page"

	"pgregory.net/rapid"
)

func TestFindSimilar(t *testing.T) {
	cells := []page.Cell{
		{Service: "checkout", Name: "cart"},
		{Service: "checkout", Name: "cart", Caller: "web"},
		{Service: "checkout", Name: "orders"},
		{Service: "payments", Name: "writes", Owner: "team-money"},
		{Service: "Search", Name: "suggest"},
	}
	tests := []struct {
		text, want string
	}{
		{"chekout", "checkout 2"}, // buckets, not cells
		{"CHEKCOUT", "checkout 2"},
		{"searhc", "Search 1"},
		{"wirtes", "writes 1"},
		{"team-monye", "team-money 1"},
		{"ordersss", "orders 1"},
		{"card", "cart 1"},
		{"cxxt", ""}, // half of it is other
		{"we", ""},
		{"nothing-like-it", ""},
		{strings.Repeat("checkout", 30), ""},
	}
	for _, tt := range tests {
		got := ""
		if s, ok := findSimilar(cells, tt.text); ok {
			got = fmt.Sprintf("%s %d", s.Name, s.Buckets)
		}
		if got != tt.want {
			t.Errorf("similar to %q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// edits agrees with its definition by recursion.
func TestEdits(t *testing.T) {
	var plain func(a, b string) int
	plain = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		la, lb := len(a)-1, len(b)-1
		d := plain(a[:la], b[:lb])
		if a[la] != b[lb] {
			d = 1 + min(d, plain(a[:la], b), plain(a, b[:lb]))
		}
		if la > 0 && lb > 0 && a[la] == b[lb-1] && a[la-1] == b[lb] {
			d = min(d, 1+plain(a[:la-1], b[:lb-1]))
		}
		return d
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[abc]{0,6}`).Draw(t, "a"), rapid.StringMatching(`[abc]{0,6}`).Draw(t, "b")
		most := rapid.IntRange(0, 6).Draw(t, "most")
		if got, want := edits(a, b, most), min(plain(a, b), most+1); got != want {
			t.Fatalf("edits(%q, %q, %d) = %d, want %d", a, b, most, got, want)
		}
	})
}

// What is similar to a search is found at once, however many names there are.
func TestSimilarIsFast(t *testing.T) {
	cells := make([]page.Cell, 100_000)
	for i := range cells {
		cells[i] = page.Cell{Service: fmt.Sprintf("service-%d", i%1100), Name: fmt.Sprintf("bucket-of-a-caller-%06d", i), Owner: "team", Caller: fmt.Sprintf("caller-%d", i%317)}
	}
	start := time.Now()
	if s, ok := findSimilar(cells, "bucket-off-a-caller-0999x9"); !ok {
		t.Errorf("nothing similar: %v", s)
	}
	took := time.Since(start)
	t.Logf("%v", took)
	if took > 5*time.Second { // 0.05 s on a machine with nothing else to do
		t.Errorf("took %v", took)
	}
}
