package bucket

import (
	"fmt"
	"net/url"
	"reflect"
	"testing"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

func TestReadRPS(t *testing.T) {
	tests := []struct {
		name, text string
		want       float64 // 0: refused
	}{
		{"digits", "11000", 11_000},
		{"commas", "11,000", 11_000},
		{"spaces", "1 200", 1200},
		{"a fraction", "0.5", 0.5},
		{"the least", "0.001", 0.001},
		{"less", "0.0001", 0},
		{"too much", "2000000000", 0},
		{"none", "0", 0},
		{"negative", "-5", 0},
		{"a word", "many", 0},
		{"no number", "NaN", 0},
		{"infinite", "Inf", 0},
		{"nothing", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readRPS(tt.text)
			if got != tt.want || (err != nil) != (tt.want == 0) {
				t.Errorf("readRPS(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
			}
			if err == nil {
				if again, err := readRPS(plain(got)); err != nil || again != got {
					t.Errorf("%v is printed as %q, which is read as %v, %v", got, plain(got), again, err)
				}
			}
		})
	}
}

// TestAnUntouchedFormChangesNothing holds for every kind of bucket: who opens the
// form and hands it in has changed nothing.
func TestAnUntouchedFormChangesNothing(t *testing.T) {
	hours := make([]float64, limiter.Hours)
	for i := range hours {
		hours[i] = float64(100 + i)
	}
	buckets := map[string]limiter.Bucket{
		"plain":     {LimitRPS: 12_345.678, Behavior: limiter.Deny},
		"shadow":    {LimitRPS: 0.001},
		"candidate": {LimitRPS: 10, CandidateRPS: 5, Behavior: limiter.Deny},
		"block":     {Block: true, Behavior: limiter.Deny},
		"hourly":    {LimitRPS: 123, Hourly: hours, TimeZone: "Europe/Berlin", Behavior: limiter.Deny},
		"regional":  {LimitRPS: 10, Scope: limiter.Region, Regions: map[string]float64{"eu": 20, "us": 5}, Behavior: limiter.Deny},
		"regional by the hour": {
			LimitRPS: 10, Scope: limiter.Region, Regions: map[string]float64{"eu": 123}, RegionHourly: map[string][]float64{"eu": hours}, TimeZone: "UTC", Behavior: limiter.Deny,
		},
	}
	for name, b := range buckets {
		t.Run(name, func(t *testing.T) {
			b.Service, b.Name = "payments", "b"
			d := draftOf(&b, 7, []string{"eu", "asia"})
			got, wrong := d.on(b)
			if len(wrong) > 0 {
				t.Fatalf("refused: %+v", wrong)
			}
			if a, b := limitsfile.BucketText(&b), limitsfile.BucketText(&got); a != b {
				t.Errorf("the form makes\n%sof\n%s", b, a)
			}
			form := url.Values{"base": {"7"}, "limit": {d.limit}, "candidate": {d.cand}, "behavior": {d.behavior}}
			for i, r := range d.regions {
				form.Set(regionNameField(i), r.region)
				form.Set(regionField(i), r.limit)
			}
			if again := readDraft(form); !reflect.DeepEqual(again, d) {
				t.Errorf("the form reads as %+v, want %+v", again, d)
			}
		})
	}
}

func TestDraftOn(t *testing.T) {
	hours := make([]float64, limiter.Hours)
	for i := range hours {
		hours[i] = 100
	}
	regional := limiter.Bucket{LimitRPS: 10, Scope: limiter.Region, Regions: map[string]float64{"eu": 20}, Behavior: limiter.Deny}
	tests := []struct {
		name  string
		of    limiter.Bucket
		draft draft
		want  string // the limit, region eu, candidate and behavior
		wrong string // fields
	}{
		{"another limit", limiter.Bucket{LimitRPS: 5, Behavior: limiter.Deny}, draft{limit: "7", behavior: "deny"}, "7 0 0 deny", ""},
		{"a candidate", limiter.Bucket{LimitRPS: 5, Behavior: limiter.Deny}, draft{limit: "5", cand: "4", behavior: "deny"}, "5 0 4 deny", ""},
		{"a candidate in shadow", limiter.Bucket{LimitRPS: 5}, draft{limit: "5", cand: "4", behavior: "allow"}, "5 0 4 allow", "candidate"},
		{"no limit", limiter.Bucket{LimitRPS: 5}, draft{behavior: "allow"}, "5 0 0 allow", "limit"},
		{"no behavior", limiter.Bucket{LimitRPS: 5}, draft{limit: "5"}, "5 0 0 allow", "behavior"},
		{"all wrong", limiter.Bucket{LimitRPS: 5}, draft{limit: "x", cand: "-1", behavior: "maybe"}, "0 0 0 allow", "limit behavior candidate candidate"},
		{"a number ends a block", limiter.Bucket{Block: true, Behavior: limiter.Deny}, draft{limit: "5", behavior: "deny"}, "5 0 0 deny", ""},
		{"a number replaces the table", limiter.Bucket{LimitRPS: 100, Hourly: hours, TimeZone: "Europe/Berlin"}, draft{limit: "100", behavior: "allow"}, "100 0 0 allow", ""},
		{"a region", regional, draft{limit: "10", regions: []regionLimit{{"eu", "30"}}, behavior: "deny"}, "10 30 0 deny", ""},
		{"a region no more", regional, draft{limit: "10", regions: []regionLimit{{"eu", ""}}, behavior: "deny"}, "10 0 0 deny", ""},
		{"a region that is no number", regional, draft{limit: "10", regions: []regionLimit{{"us", "1"}, {"eu", "x"}}, behavior: "deny"}, "10 0 0 deny", "region-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, wrong := tt.draft.on(tt.of)
			text := fmt.Sprintf("%v %v %v %v", got.LimitRPS, got.Regions["eu"], got.CandidateRPS, got.Behavior)
			fields := ""
			for i, p := range wrong {
				if i > 0 {
					fields += " "
				}
				fields += p.Field
			}
			if text != tt.want || fields != tt.wrong {
				t.Errorf("the form makes %q, wrong %q, want %q and %q", text, fields, tt.want, tt.wrong)
			}
			if got.Hourly != nil || got.TimeZone != "" || got.Block {
				t.Errorf("the bucket keeps its table or block: %+v", got)
			}
		})
	}
	if regional.Regions["eu"] != 20 {
		t.Error("the present bucket was changed")
	}
}
