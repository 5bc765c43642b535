package runs

import (
	"testing"

	grlv1 "grl/proto/grl/v1"
)

func TestChange(t *testing.T) {
	limit := func(rps float64) *grlv1.ComputedLimit { return &grlv1.ComputedLimit{Rps: rps} }
	tests := []struct {
		name         string
		before       *grlv1.ComputedLimit // rps
		after        *grlv1.ComputedLimit
		lower, large bool
		change       string
		headroom     string // over a highest minute of 100 rps
		over         int    // of 2 days known
	}{
		{"a fifth more", limit(100), limit(120), false, false, "▲ 20.0%", "20%", 0},
		{"more than a fifth", limit(100), limit(121), false, true, "▲ 21.0%", "21%", 0},
		{"a fifth less", limit(100), limit(80), true, false, "▼ 20.0%", "−20%", 1},
		{"half", limit(100), limit(50), true, true, "▼ 50.0%", "−50%", 2},
		{"the same", limit(100), limit(100), false, false, "0", "0%", 0},
		{"a hundred times", limit(1), limit(100), false, true, "▲ ×100", "0%", 0},
		{"many times the load", limit(2000), limit(2500), false, true, "▲ 25.0%", "×25", 0},
		{
			"one region falls", &grlv1.ComputedLimit{Rps: 100, RegionsRps: map[string]float64{"eu": 50, "us": 50}},
			&grlv1.ComputedLimit{Rps: 110, RegionsRps: map[string]float64{"eu": 90, "us": 45}}, true, false, "▼ 10.0%", "10%", 0,
		},
		{"a region of its own", limit(100), &grlv1.ComputedLimit{Rps: 100, RegionsRps: map[string]float64{"eu": 60}}, true, true, "▼ 40.0%", "0%", 0},
		{"one hour falls", limit(100), &grlv1.ComputedLimit{Rps: 150, HourlyRps: []float64{150, 70}}, true, true, "▼ 30.0%", "50%", 0},
		{"a candidate", limit(200), &grlv1.ComputedLimit{Rps: 200, CandidateRps: 150}, true, true, "▼ 25.0%", "50%", 0},
		{"beside a candidate", &grlv1.ComputedLimit{Rps: 100, CandidateRps: 70}, &grlv1.ComputedLimit{Rps: 110, CandidateRps: 70}, false, false, "▲ 10.0%", "10%", 0},
		{"nothing computed", limit(100), nil, false, false, "", "", 0},
		{"no limit before", nil, limit(5), false, false, "", "−95%", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &grlv1.RunResult{Bucket: "a/b", Before: tt.before, After: tt.after, DailyPeaks: []float32{-1, 60, 100}}
			if got := lower(m); got != tt.lower {
				t.Errorf("lower %v, want %v", got, tt.lower)
			}
			if got := large(m); got != tt.large {
				t.Errorf("large %v, want %v", got, tt.large)
			}
			if got := changeText(m); got != tt.change {
				t.Errorf("change %q, want %q", got, tt.change)
			}
			if got := headroomText(m); got != tt.headroom {
				t.Errorf("headroom %q, want %q", got, tt.headroom)
			}
			if over, known := daysOver(m); over != tt.over || known != 2 {
				t.Errorf("%d of %d days over, want %d of 2", over, known, tt.over)
			}
		})
	}
	fresh := &grlv1.RunResult{Bucket: "a/b", After: limit(5), NewBucket: "name: b\nlimit: {rps: 5}\n"}
	if got := changeText(fresh); got != "new" || lower(fresh) || large(fresh) {
		t.Errorf("a new bucket: %q", got)
	}
}

func TestShort(t *testing.T) {
	for reason, want := range map[string]string{
		"19 → 26 rps: the peak of the last 4 weeks, 19 rps; 2 steps are missing":                  "The peak of the last 4 weeks, 19 rps.",
		"19 → 26 rps: the peak, 19 rps (its highest second), buffer 1.10 (nothing is learnt yet)": "The peak, 19 rps, buffer 1.10.",
		`19 → 26 rps: the peak (of 4 weeks), times 3.00 for "sale (big)"`:                         `The peak (of 4 weeks), times 3.00 for "sale (big)".`,
		"since it is so":                        "Since it is so.",
		"":                                      "",
		"26 rps: the peak":                      "26 rps: the peak.",
		"12,000 → 14,000 rps: agreed \u202e":    "Agreed \ufffd.",
		"the history is not fit: 4 rps: a half": "The history is not fit: 4 rps: a half.",
	} {
		if got := short(reason); got != want {
			t.Errorf("short(%q) = %q, want %q", reason, got, want)
		}
	}
}
