package simulate

import (
	"io"
	"strings"
)

// WriteMarkdown writes sections as one table in Markdown: a line for each
// scenario and law, a column for each metric.
func WriteMarkdown(w io.Writer, sections []*Section) error {
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := []string{"scenario", "law"}, []string{"---", "---"}
	for _, m := range Metrics() {
		head, rule = append(head, "`"+m.Name+"`"), append(rule, "---:")
	}
	row(head...)
	row(rule...)
	for _, s := range sections {
		for i, r := range s.Results {
			cells := []string{r.Scenario, r.Law}
			for k, m := range Metrics() {
				cells = append(cells, s.values(k, m)[i])
			}
			row(cells...)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
