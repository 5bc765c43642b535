package aggregator

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
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

// BenchmarkDirectiveDown passes a directive in which one cell of each of 100
// services moved on to 1,000 hosts of these.
func BenchmarkDirectiveDown(b *testing.B) {
	const services, buckets, hosts = 100, 100, 1000
	c := &limiter.Configuration{Epoch: 1, Revision: 1}
	for s := range services {
		service := limiter.Service{Name: fmt.Sprint("s", s)}
		for i := range buckets {
			service.Buckets = append(service.Buckets, limiter.Bucket{
				Service: service.Name, Name: fmt.Sprint("b", i), LimitRPS: 100,
				Match: limiter.Match{Procedure: limiter.Pattern(fmt.Sprint("p", i))},
			})
		}
		c.Services = append(c.Services, service)
	}
	r := newRig(b, c)
	all := make([]*host, hosts)
	for i := range all {
		hello := &grlv1.Hello{Node: fmt.Sprint("h", i), BootId: 1, Services: []string{fmt.Sprint("s", i%services)}}
		all[i] = r.n.join(r.now, hello, nil)
		r.n.configurationFor(all[i])
	}
	directive := func(sequence uint64, buckets ...int) {
		var rows []statefile.Row
		for s := range services {
			for _, i := range buckets {
				rows = append(rows, row(limiter.CellID{Bucket: fmt.Sprintf("s%d/b%d", s, i)}, 100, float64(100+sequence), 0.1))
			}
		}
		r.say(globalDecider, seq(sequence), rows...)
	}
	for i := range buckets {
		directive(1, i)
	}
	sequence := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		sequence++
		directive(sequence, int(sequence%buckets))
		for _, h := range all {
			if len(r.n.directives(r.now, h)) != 1 {
				b.Fatal("no directive")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
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
