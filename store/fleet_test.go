package store

import (
	"testing"

	"grl/limiter"
)

// TestFleetIsNoBucket: who asks for buckets does not get all of them together.
func TestFleetIsNoBucket(t *testing.T) {
	s := openStore(t, t.TempDir())
	fleet := limiter.CellID{Bucket: FleetBucket}
	mustAppend(t, s, at(0), Sample{Cell: fleet, Zone: "z1", Offered: 5, Admitted: 5}, Sample{Cell: writes, Zone: "z1", Offered: 5, Admitted: 5})
	if got := s.Cells(""); len(got) != 1 || got[0] != writes {
		t.Errorf("Cells = %v, want the bucket's alone", got)
	}
	for _, test := range []struct {
		name string
		q    SeriesQuery
		want limiter.CellID
	}{
		{"by a prefix of all", SeriesQuery{Prefixes: []string{""}}, writes},
		{"by a prefix of it", SeriesQuery{Prefixes: []string{"_"}}, limiter.CellID{}},
		{"by its name", SeriesQuery{Buckets: []string{FleetBucket}}, fleet},
	} {
		test.q.From, test.q.To = at(0), at(60)
		got := mustSeries(t, s, test.q)
		switch {
		case test.want == (limiter.CellID{}) && len(got) != 0:
			t.Errorf("%s: %v, want nothing", test.name, got)
		case test.want != (limiter.CellID{}) && (len(got) != 1 || got[0].Cell != test.want):
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := mustMinutes(t, s, fleet, at(0), at(1)); len(got) != 1 || got[0].Offered != 5 {
		t.Errorf("Minutes of the fleet = %v", got)
	}
}
