package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	grlv1 "grl/proto/grl/v1"
)

func TestTable(t *testing.T) {
	s := &screen{
		plan: plan{third: 20 * time.Second, total: time.Minute, surge: 15, limits: limits{all: 578}},
		cells: []*grlv1.BucketView{
			{Bucket: bucketPerCaller, Caller: "outside", OfferedRps: 380, AdmittedRps: 380, LimitRps: 434},
			{Bucket: bucketAll, OfferedRps: 4000, AdmittedRps: 570, LimitRps: 578, DropRatio: 0.866},
			{Bucket: bucketPerCaller, Caller: "frontend", OfferedRps: 3600, AdmittedRps: 3600, LimitRps: 434, DropRatio: 0.88},
			{Bucket: bucketProducts, OfferedRps: 1900, AdmittedRps: 1900, LimitRps: 250, DropRatio: 0.87},
		},
	}
	byZone := [len(zones)]window{{offered: 2300, admitted: 310, dropped: 1990}, {offered: 2000, admitted: 268, dropped: 1732}}
	want := `
[############------------------] 25 of 60 s: the surge, 15 times as much

requests per second                   offered   admitted    limit   ratio
zone-a                                  2,300        310              87%  dropped of what it was offered
zone-b                                  2,000        268              87%  dropped of what it was offered
shop/all                                4,300        578      578     87%  enforced: the ratio that the controller sends
shop/products                           1,900      1,900      250     87%  shadow: would drop, drops nothing
shop/each-caller frontend               3,600      3,600      434     88%  shadow, a limit for each caller
shop/each-caller outside                  380        380      434      0%  shadow, a limit for each caller
`
	if diff := cmp.Diff(want, "\n"+s.table(25*time.Second+100*time.Millisecond, byZone)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	line := " 25 s  surge   offered  4300  admitted   578  limit   578  ratio  87%" +
		" | zone-a offered  2300  admitted   310  dropped  87% | zone-b offered  2000  admitted   268  dropped  87%\n"
	if diff := cmp.Diff(line, s.line(25*time.Second+100*time.Millisecond, byZone)); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestTableBeforeTheControllerTellsOfCells(t *testing.T) {
	s := &screen{plan: plan{third: 20 * time.Second, total: time.Minute, limits: limits{all: 578}}}
	if got := s.table(time.Second, [len(zones)]window{}); strings.Count(got, "\n") != 6 {
		t.Errorf("table %q, want a row for each zone and one for the enforced bucket", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}
