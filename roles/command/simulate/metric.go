package simulate

import (
	"math"
	"strconv"
	"strings"

	"grl/roles/fleet"
)

// Metric is a line of the table of metrics.
type Metric struct {
	Name string // as fleet.Metrics.List has it
	Unit string // "" for an index
	Line string // what it is, in one line

	decimals int
}

// Metrics returns what a run is judged by, in the order of the table.
func Metrics() []Metric {
	return []Metric{
		{"overshoot_seconds", "s of limit", "what was admitted above the limit while the load was, chance included", 2},
		{"settle_seconds", "s", "from the change until admitted stays within 5 % of the limit, or of the load if that is less; – where too few requests tell", 2},
		{"false_drops_seconds", "s of limit", "what was dropped while the load was within the limit", 2},
		{"false_drops_percent", "% of offered", "the same, of what was offered meanwhile", 2},
		{"steady_sd_percent", "% of limit", "deviation of the seconds of steady overload", 2},
		{"mean_error_percent", "% of limit", "how far admitted is above the limit in steady overload, in the mean", 2},
		{"peak_to_peak_percent", "% of limit", "from the lowest to the highest second of steady overload", 2},
		{"release_seconds", "s", "from the fall below the limit until drops end", 2},
		{"bytes_per_host_second", "bytes", "messages of a host, both ways, in a mean second", 0},
		{"worst_bytes_per_host_second", "bytes", "the same in the worst second of the fleet", 0},
		{"jain_hosts", "", "Jain's index of admitted / offered of the hosts in steady overload; 1 is the same for all", 4},
	}
}

// Texts of what is no number.
const (
	never    = "never" // did not happen before the end
	noMetric = "–"     // the scenario has no part for it
)

// format prints a value of m.
func (m Metric) format(v float64) string {
	switch {
	case math.IsNaN(v):
		return noMetric
	case math.IsInf(v, 0):
		return never
	default:
		return fixed(v, m.decimals)
	}
}

// fixed prints v with decimals and commas between thousands; what rounds to
// zero has no sign.
func fixed(v float64, decimals int) string {
	digits, negative := strings.CutPrefix(strconv.FormatFloat(v, 'f', decimals, 64), "-")
	negative = negative && strings.Trim(digits, "0.") != ""
	whole := len(digits)
	if dot := strings.IndexByte(digits, '.'); dot >= 0 {
		whole = dot
	}
	for i := whole - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// rps prints a rate as limits files have it: whole from 100, and three digits
// below.
func rps(v float64) string {
	switch {
	case v >= 99.95:
		return fixed(v, 0)
	case v >= 9.995:
		return fixed(v, 1)
	case v >= 0.9995:
		return fixed(v, 2)
	default:
		return fixed(v, 3)
	}
}

// values returns the values of m under each law, ready to print.
func (s *Section) values(i int, m Metric) []string {
	out := make([]string, len(s.Results))
	for j, r := range s.Results {
		out[j] = m.format(r.Metrics.List()[i].Value)
	}
	return out
}

// List returns what `grl simulate --list` prints: the scenarios, the laws and
// the metrics.
func List() string {
	var b strings.Builder
	entries := func(title string, list []fleet.Entry) {
		b.WriteString(title + "\n")
		for _, e := range list {
			b.WriteString("  " + pad(e.Name, listWidth) + e.Line + "\n")
		}
		b.WriteString("\n")
	}
	entries("Scenarios, --scenario", fleet.Scenarios())
	entries("Laws, --law", fleet.Laws())
	b.WriteString("Metrics\n")
	for _, m := range Metrics() {
		line := m.Line
		if m.Unit != "" {
			line += "; " + m.Unit
		}
		b.WriteString("  " + pad(m.Name, listWidth) + line + "\n")
	}
	return b.String()
}

// listWidth is wider than any name of a list.
const listWidth = 29
