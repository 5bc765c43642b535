package history_test

import (
	"fmt"
	"strings"
	"testing"

	"grl/limiter"
	"grl/roles/configurator/history"
)

// regionTests are regions that a bucket of scope region is found in, beside eu.
var regionTests = []struct {
	name    string
	regions []string
	// configured have a limit of their own.
	configured map[string]float64
	want       string // in the error; "": there is none
}{
	{"a name", []string{"us-1.a_b:c/d"}, nil, ""},
	{"as many as there may be", manyRegions(199), nil, ""},
	{"one more", manyRegions(200), nil, "more than 200 regions"},
	{"one more, with those that have a limit", manyRegions(199), map[string]float64{"asia": 5}, "more than 200 regions"},
	{"a space", []string{"e u"}, nil, `region: "e u" is no name`},
	{"an underscore in front", []string{"_unknown"}, nil, `region: "_unknown" is no name`},
	{"256 bytes", []string{strings.Repeat("x", 256)}, nil, ""},
	{"257 bytes", []string{strings.Repeat("x", 257)}, nil, "region: 257 bytes, at most 256"},
	{"what a limits file has already", []string{".x"}, map[string]float64{".x": 5}, ""},
}

func manyRegions(n int) []string {
	var regions []string
	for i := range n {
		regions = append(regions, fmt.Sprintf("r%d", i))
	}
	return regions
}

// checkRegions checks that the bucket s/b is refused, and that s/other is not.
func checkRegions(t *testing.T, got map[string]history.Bucket, err error, found int, want string) {
	t.Helper()
	if other := got["s/other"]; err != nil || other.Err != nil || len(other.Units) != 1 {
		t.Errorf("another bucket has %d units, %v; %v", len(other.Units), other.Err, err)
	}
	b := got["s/b"]
	switch {
	case want == "" && (b.Err != nil || len(b.Units) != found):
		t.Errorf("%d units, %v; want %d", len(b.Units), b.Err, found)
	case want != "" && (b.Err == nil || !strings.Contains(b.Err.Error(), want) || b.Units != nil):
		t.Errorf("%d units, err = %v, want %q in it", len(b.Units), b.Err, want)
	}
}

func TestCSVRegions(t *testing.T) {
	tests := append(regionTests, regionTests[0])
	last := &tests[len(tests)-1]
	last.name, last.regions, last.want = "no text", []string{"caf\xe9"}, `region: "caf\xe9" is no name`
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			content := "t_unix,rps,instance\n"
			for _, region := range append([]string{"eu"}, tt.regions...) {
				content += fmt.Sprintf("%d,1,%s\n", night.Add(-week).Unix(), region)
			}
			b := readCSV(t, limiter.Bucket{Scope: limiter.Region, Regions: tt.configured}, "s/b.csv", content)
			got := map[string]history.Bucket{"s/b": b, "s/other": {Units: make([]history.Unit, 1)}}
			checkRegions(t, got, nil, len(tt.regions)+1, tt.want)
		})
	}
}

func TestControllerRegions(t *testing.T) {
	for _, tt := range regionTests {
		t.Run(tt.name, func(t *testing.T) {
			p := weeks(1, "z")
			for _, region := range append([]string{"eu"}, tt.regions...) {
				p.cell(limiter.CellID{Bucket: "s/b", Instance: region}, 60).Offered = []uint64{60}
			}
			p.cell(limiter.CellID{Bucket: "s/other"}, 60)
			got, err := read(t, p, want(limiter.Bucket{Name: "b", Scope: limiter.Region, Regions: tt.configured}, limiter.Bucket{Name: "other"}))
			checkRegions(t, got, err, len(tt.regions)+1, tt.want)
		})
	}
}

func TestPrometheusRegions(t *testing.T) {
	for _, tt := range regionTests {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{series: []promSeries{{bucket: "s/other", labels: map[string]string{"region": "eu"}, rps: steady(1)}}}
			for _, region := range append([]string{"eu"}, tt.regions...) {
				s.series = append(s.series, promSeries{bucket: "s/b", labels: map[string]string{"region": region}, rps: steady(1)})
			}
			q := want(limiter.Bucket{Name: "b", Scope: limiter.Region, Regions: tt.configured}, limiter.Bucket{Name: "other"})
			q.From, q.To = night.Add(-day), night
			s.change = func(values [][2]any) [][2]any { return values[:1] }
			got, err := collect(t, s.source(t, history.PrometheusOptions{}), q)
			checkRegions(t, got, err, len(tt.regions)+1, tt.want)
		})
	}
}
