package limiter

import (
	"fmt"
	"reflect"
	"testing"
)

func TestDetail(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", ""), allow("shadow", "c1", "")}})
	cell(t, l, "shadow", "").SetRatio(1)
	for i := range 30 {
		send(l, i+1, fmt.Sprintf("c%d", i), "x")
		for range i + 1 {
			l.Service("free").Decide(fmt.Sprintf("c%d", i), "x")
		}
	}
	l.Collect(at(0))
	d := l.Detail()
	if len(d.Buckets) != 2 || len(d.Services) != 1 {
		t.Fatalf("Detail = %+v, want two buckets and one service", d)
	}
	b := d.Buckets[0]
	if len(b.Callers) != 20 || b.Callers[0] != (CallerCounts{"c29", Counts{Offered: 30}}) || b.Rest.Offered != 55 {
		t.Errorf("callers of b = %+v, want c29 with 30 first, 20 in all and 55 as the rest", b)
	}
	want := BucketDetail{Bucket: "s/shadow", Callers: []CallerCounts{{"c1", Counts{Offered: 2, ShadowDropped: 2}}}}
	if !reflect.DeepEqual(d.Buckets[1], want) {
		t.Errorf("detail of shadow = %+v, want %+v", d.Buckets[1], want)
	}
	s := d.Services[0]
	if s.Service != "free" || len(s.Pairs) != 20 || s.Pairs[0] != (PairCounts{"c29", "x", 30}) || s.Rest != 55 {
		t.Errorf("pairs of free = %+v, want c29 with 30 first, 20 in all and 55 as the rest", s)
	}
	l.Collect(at(0))
	if d := l.Detail(); len(d.Buckets)+len(d.Services) != 0 {
		t.Errorf("second Detail = %+v, want nothing new", d)
	}
}
