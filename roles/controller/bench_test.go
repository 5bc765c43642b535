package controller

import (
	"fmt"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// benchRig returns a controller to which so many zones have reported so many
// cells each, and their speakers.
func benchRig(b *testing.B, zones, cells int) (*rig, []*speaker) {
	b.Helper()
	c := &limiter.Configuration{Epoch: 1, Revision: 1}
	for from := 0; from < cells; from += 1000 {
		s := limiter.Service{Name: fmt.Sprint("s", from)}
		for i := from; i < min(from+1000, cells); i++ {
			s.Buckets = append(s.Buckets, limiter.Bucket{
				Service: s.Name, Name: fmt.Sprint("b", i), LimitRPS: 1000,
				Match: limiter.Match{Procedure: limiter.Pattern(fmt.Sprint("p", i))},
			})
		}
		c.Services = append(c.Services, s)
	}
	r := newRig(b, c)
	r.warm()
	var speakers []*speaker
	for z := range zones {
		s := newSpeaker("a", fmt.Sprint("z", z), uint64(z))
		s.join(r)
		for _, m := range benchReports(s, c, 1) {
			if _, err := r.n.report(r.now, s.c, m); err != nil {
				b.Fatal(err)
			}
		}
		speakers = append(speakers, s)
	}
	r.n.renew(r.now)
	return r, speakers
}

// benchReports returns the reports of one T with all cells.
func benchReports(s *speaker, c *limiter.Configuration, turn uint64) []*grlv1.Report {
	var out []*grlv1.Report
	m := &grlv1.Report{}
	seal := func() {
		s.sequence++
		m.Sequence = s.sequence
		out = append(out, m)
		m = &grlv1.Report{}
	}
	index := 0
	for i := range c.Services {
		for j := range c.Services[i].Buckets {
			if wire.Full(m) {
				seal()
			}
			id := limiter.CellID{Bucket: c.Services[i].Buckets[j].FullName()}
			rate := law.Rate{Offered: law.MicroRPS(20e6 + uint64(index%7)*1e6 + turn%5*2e6), Hosts: 10}
			wire.AppendRow(m, s.numbers.Number(index, id, &m.Names), rate, law.Counts{Offered: 100 * turn, Dropped: turn})
			index++
		}
	}
	seal()
	return out
}

// BenchmarkRenew decides all cells, as at each T.
func BenchmarkRenew(b *testing.B) {
	for _, size := range []struct{ zones, cells int }{{1, 10_000}, {10, 10_000}, {30, 10_000}, {1, 100_000}, {30, 100_000}} {
		b.Run(fmt.Sprintf("%d zones, %d cells", size.zones, size.cells), func(b *testing.B) {
			r, _ := benchRig(b, size.zones, size.cells)
			b.ReportAllocs()
			for b.Loop() {
				r.pass(time.Millisecond)
				r.n.renew(r.now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size.cells), "ns/cell")
		})
	}
}

// BenchmarkReportFold takes in what a zone reports at a T, all cells moved, and
// keeps it for the history.
func BenchmarkReportFold(b *testing.B) {
	const cells = 10_000
	r, speakers := benchRig(b, 30, cells)
	turn := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		turn++
		reports := benchReports(speakers[0], r.n.config, turn)
		r.pass(law.T)
		b.StartTimer()
		for _, m := range reports {
			if _, err := r.n.report(r.now, speakers[0].c, m); err != nil {
				b.Fatal(err)
			}
		}
		r.n.decide(r.now)
		b.StopTimer()
		r.n.recorder.take(r.now, false)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cells), "ns/cell")
}
