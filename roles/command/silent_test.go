package command

import (
	"strings"
	"testing"

	grlv1 "grl/proto/grl/v1"
)

// What a table lacks is marked at the figure, and said below it.
func TestTablesSayWhatTheyLack(t *testing.T) {
	gone := &grlv1.SilentZone{Name: "us1", SilentMs: 65_400}
	kept := &grlv1.SilentZone{Name: "region eu", SilentMs: 5_900, Counted: true}
	rows := func(zones ...string) []*grlv1.BucketView {
		return []*grlv1.BucketView{{Bucket: "pay/whole", OfferedRps: 300}, {Bucket: "pay/lacking", OfferedRps: 1200, SilentZones: zones}}
	}
	list := &grlv1.ListBucketsResponse{Buckets: rows("region eu", "us1"), Silent: []*grlv1.SilentZone{kept, gone}}
	explained := &grlv1.ExplainResponse{Known: true, Silent: list.GetSilent()}
	for _, b := range list.GetBuckets() {
		explained.Cells = append(explained.Cells, &grlv1.ExplainCell{Bucket: b})
	}
	const missing, counted = "zone us1 is silent for 65s: what it offers now is missing from the figures", "region eu is silent for 5.0s: its last known rates still count in the figures"
	for name, text := range map[string]string{
		"top": topText(list), "get": bucketTable(list), "explain": explainText(&grlv1.ExplainRequest{}, explained),
	} {
		for _, want := range []string{"≥ 1,200", missing + "\n", counted + "\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "≥ 300") {
			t.Errorf("%s marks what lacks nothing:\n%s", name, text)
		}
	}
	list.Buckets, list.Silent = rows("region eu"), []*grlv1.SilentZone{kept}
	if text := topText(list); strings.Contains(text, "≥") || !strings.Contains(text, counted) {
		t.Errorf("top of what is counted as it was last:\n%s", text)
	}
	if text := topText(&grlv1.ListBucketsResponse{Buckets: rows()}); strings.Contains(text, "silent") || strings.Contains(text, "≥") {
		t.Errorf("top of a whole fleet:\n%s", text)
	}
	s := status{fleet: &grlv1.GetFleetResponse{Silent: []*grlv1.SilentZone{kept, gone}}}
	if text := s.text(); !strings.Contains(text, "\n"+counted+"\n"+missing+"\n") {
		t.Errorf("status:\n%s", text)
	}
	caps := capTable([]*grlv1.CapView{{Cap: &grlv1.Cap{Id: "7"}, Clients: 2, ClientsHolding: 2, ClientsUnheard: 3}, {Cap: &grlv1.Cap{Id: "8"}, Clients: 2, ClientsHolding: 1}})
	if !strings.Contains(caps, "2/2 + 3 unheard") || strings.Count(caps, "unheard") != 1 {
		t.Errorf("caps:\n%s", caps)
	}
}
