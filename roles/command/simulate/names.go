package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"grl/roles/fleet"
)

// All stands for all names of a list.
const All = "all"

// chooseScenarios returns the scenarios of names. All of them are those that
// can run: "trace" only if there is a trace.
func chooseScenarios(names []string, traced bool) ([]string, error) {
	known, def := fleet.Scenarios(), fleet.Step
	if traced {
		def = fleet.Replay
	}
	chosen, err := choose("scenario", names, def, known)
	if err != nil {
		return nil, err
	}
	switch replay := slices.Contains(chosen, fleet.Replay); {
	case traced && !replay:
		return nil, fmt.Errorf("a trace is for the scenario %s, not %s", fleet.Replay, strings.Join(chosen, ","))
	case replay && !traced && slices.Contains(names, fleet.Replay):
		return nil, errors.New("the scenario trace needs --trace FILE")
	case replay && !traced:
		chosen = slices.DeleteFunc(chosen, func(s string) bool { return s == fleet.Replay })
	}
	return chosen, nil
}

// choose returns the names of known that names has, each once: def if names is
// empty, every one for All.
func choose(noun string, names []string, def string, known []fleet.Entry) ([]string, error) {
	if len(names) == 0 {
		return []string{def}, nil
	}
	all := make([]string, len(known))
	for i, e := range known {
		all[i] = e.Name
	}
	var chosen []string
	var errs []error
	for _, name := range names {
		switch {
		case name == All:
			chosen = append(chosen, all...)
		case slices.Contains(all, name):
			chosen = append(chosen, name)
		default:
			errs = append(errs, fmt.Errorf("unknown %s %q; nearest is %q of %s", noun, name, nearest(name, all), strings.Join(all, ", ")))
		}
	}
	return distinct(chosen), errors.Join(errs...)
}

// distinct returns names without those that came before.
func distinct(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// nearest returns the word that takes the fewest changes to be name.
func nearest(name string, words []string) string {
	return slices.MinFunc(words, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance counts the bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from what is read of a to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
