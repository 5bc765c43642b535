package simulate

import (
	"slices"
	"testing"

	"grl/roles/fleet"
)

func TestChooseScenarios(t *testing.T) {
	var all []string
	for _, e := range fleet.Scenarios() {
		all = append(all, e.Name)
	}
	withoutTrace := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == fleet.Replay })
	tests := []struct {
		name   string
		names  []string
		traced bool
		want   []string
	}{
		{"nothing said", nil, false, []string{fleet.Step}},
		{"a trace alone", nil, true, []string{fleet.Replay}},
		{"all without a trace", []string{All}, false, withoutTrace},
		{"all with a trace", []string{All}, true, all},
		{"twice", []string{"ramp", "step", "ramp"}, false, []string{"ramp", "step"}},
		{"all after one", []string{"churn", All}, false, slices.Compact(append([]string{"churn"}, slices.DeleteFunc(slices.Clone(withoutTrace), func(s string) bool { return s == "churn" })...))},
		{"a trace beside another", []string{"step", "trace"}, true, []string{"step", "trace"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chooseScenarios(tt.names, tt.traced)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("chooseScenarios(%v, %v) = %v, %v, want %v", tt.names, tt.traced, got, err, tt.want)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	words := []string{"step", "ramp", "retry", "retry-near", "failover-surge"}
	for name, want := range map[string]string{
		"stpe": "step", "setp": "step", "retri": "retry", "retry_near": "retry-near", "failoversurge": "failover-surge", "RAMP ": "step", "": "step",
	} {
		if got := nearest(name, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"limits/a.yaml": "limits/a.yaml", "": "''", "my limits": "'my limits'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "*": "'*'",
	} {
		if got := quote(s); got != want {
			t.Errorf("quote(%q) = %s, want %s", s, got, want)
		}
	}
}
