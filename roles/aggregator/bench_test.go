package aggregator

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

const benchCells = 200

// benchReports returns reports of a host with many active cells: the one that
// names them, and those that follow.
func benchReports(b *testing.B, s *speaker, count int) [][]byte {
	b.Helper()
	out := make([][]byte, count)
	for i := range out {
		rows := make([]said, benchCells)
		for cell := range rows {
			n := uint64(1000*i + 10*cell)
			rows[cell] = said{cell, 40 + float64((cell*7+i*13)%50), law.Counts{Offered: 5*n + 3, Dropped: n}}
		}
		data, err := proto.Marshal(s.message(rows...))
		if err != nil {
			b.Fatal(err)
		}
		out[i] = data
	}
	return out
}

func BenchmarkReportDecodeAndMerge(b *testing.B) {
	benchmarkReport(b, true)
}

func BenchmarkReportDecode(b *testing.B) {
	benchmarkReport(b, false)
}

func benchmarkReport(b *testing.B, merge bool) {
	r := newRig(b, revision(1, benchCells))
	s := newSpeaker("a", 1)
	s.join(r)
	reports := benchReports(b, s, 64)
	first := &grlv1.Report{}
	if err := proto.Unmarshal(reports[0], first); err != nil {
		b.Fatal(err)
	}
	if _, err := r.n.report(r.now, s.h, first); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		m := &grlv1.Report{}
		if err := proto.Unmarshal(reports[1+turn%63], m); err != nil {
			b.Fatal(err)
		}
		turn++
		if !merge {
			continue
		}
		m.Sequence = uint64(turn + 1)
		r.now = r.now.Add(time.Second)
		if taken, err := r.n.report(r.now, s.h, m); err != nil || !taken {
			b.Fatal(taken, err)
		}
		if turn%64 == 0 { // as many hosts report within Coalesce
			r.p.Jumps(r.n)
			r.n.tick(r.now)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchCells), "ns/cell")
	b.ReportMetric(float64(len(reports[1])), "B/report")
}

// BenchmarkReportUp forms the zone's full report of 10,000 cells, all moved.
func BenchmarkReportUp(b *testing.B) {
	const cells = 10_000
	c := revision(1, 0)
	for i := range cells {
		c.Services[0].Buckets = append(c.Services[0].Buckets, limiter.Bucket{Service: "pay", Name: fmt.Sprintf("b%d", i), LimitRPS: 100, Match: limiter.Match{Procedure: limiter.Pattern(fmt.Sprint(i))}})
	}
	r := newRig(b, c)
	s := newSpeaker("a", 1)
	s.join(r)
	for from := 0; from < cells; from += 500 {
		rows := make([]said, 500)
		for i := range rows {
			rows[i] = said{from + i, 50, law.Counts{Offered: 100}}
		}
		s.report(rows...)
	}
	turn := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		turn++
		for i := range cells {
			r.n.sum.Fold(&s.h.child, uint32(i), law.Rate{Offered: law.Micro(50 + float64(turn%2)*20), Hosts: 1}, law.Counts{Offered: 100 + turn*10}, false)
		}
		for range 2 {
			r.pass(law.T)
			r.n.tick(r.now)
		}
		r.p.Full(r.now, r.n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cells), "ns/cell")
}
