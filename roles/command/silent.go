package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
)

// atLeast formats a sum of rates, marked if the load of a silent zone is missing
// from it: "≥ 240".
func atLeast(rps float64, zones []string, silent []*grlv1.SilentZone) string {
	missing := slices.ContainsFunc(silent, func(z *grlv1.SilentZone) bool {
		return !z.GetCounted() && slices.Contains(zones, z.GetName())
	})
	if missing {
		return "≥ " + rate(rps)
	}
	return rate(rps)
}

// silentLines say which zones are silent, for how long, and what figures lack of
// them.
func silentLines(silent []*grlv1.SilentZone) []string {
	var lines []string
	for _, z := range silent {
		name := z.GetName()
		if !strings.HasPrefix(name, "region ") {
			name = "zone " + name
		}
		lacks := "what it offers now is missing from the figures"
		if z.GetCounted() {
			lacks = "its last known rates still count in the figures"
		}
		lines = append(lines, fmt.Sprintf("%s is silent for %s: %s", name, span(milliseconds(z.GetSilentMs()).Truncate(time.Second)), lacks))
	}
	return lines
}

// silentText is silentLines below a table; "": no zone is silent.
func silentText(silent []*grlv1.SilentZone) string {
	if len(silent) == 0 {
		return ""
	}
	return "\n" + strings.Join(silentLines(silent), "\n") + "\n"
}
