package simulate

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/roles/fleet"
)

// TestDocumentedLists compares the tables of docs/simulate.md with the
// scenarios, laws and metrics there are, in their order.
func TestDocumentedLists(t *testing.T) {
	text, err := os.ReadFile("../../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	var metrics []string
	for _, m := range Metrics() {
		unit := m.Unit
		if unit == "" {
			unit = "1"
		}
		metrics = append(metrics, "`"+m.Name+"` | "+unit+" | "+m.Line)
	}
	for title, want := range map[string][]string{"Scenarios": rows(fleet.Scenarios()), "Laws": rows(fleet.Laws()), "Metrics": metrics} {
		_, section, _ := strings.Cut(string(text), "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var documented []string
		for _, m := range regexp.MustCompile("(?m)^\\| (`.*) \\|$").FindAllStringSubmatch(section, -1) {
			documented = append(documented, m[1])
		}
		if diff := cmp.Diff(want, documented); diff != "" {
			t.Errorf("%s of docs/simulate.md (-code +docs):\n%s", title, diff)
		}
	}
}

func rows(entries []fleet.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, "`"+e.Name+"` | "+e.Line)
	}
	return out
}

// TestListHasAll is about what --list prints.
func TestListHasAll(t *testing.T) {
	list := List()
	for _, e := range append(fleet.Scenarios(), fleet.Laws()...) {
		if !strings.Contains(list, "\n  "+pad(e.Name, listWidth)+e.Line+"\n") {
			t.Errorf("--list lacks %s", e.Name)
		}
	}
	for _, m := range Metrics() {
		if !strings.Contains(list, "\n  "+pad(m.Name, listWidth)+m.Line) {
			t.Errorf("--list lacks %s", m.Name)
		}
	}
}
