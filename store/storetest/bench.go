package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"grl/store"
	"grl/store/ledger"
)

// BenchmarkApply applies 100,000 buckets in documents of several sizes to an
// empty engine, then an edit of one of them, and reads that as a follower would.
// open is that of RunLedger.
func BenchmarkApply(b *testing.B, open func(testing.TB) store.Engine) {
	const buckets = 100_000
	for _, services := range []int{1, 1100, buckets} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			c := change()
			for i := range services {
				c.Documents[fmt.Sprintf("service-%d", i)] = largeDocument(i, buckets/services)
			}
			c.Subjects = nil
			for b.Loop() {
				e := open(b)
				l := ledger.New(e)
				measureApply(b, l, c)
			}
			b.ReportMetric(0, "ns/op") // it has the opening in it
		})
	}
}

func measureApply(b *testing.B, l *ledger.Ledger, c ledger.Change) {
	timed := func(unit string, do func() error) {
		b.Helper()
		start := b.Elapsed()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((b.Elapsed() - start).Seconds(), unit)
	}
	timed("s/apply", func() error {
		_, err := l.Apply(b.Context(), 0, c)
		return err
	})
	timed("s/documents", func() error {
		_, err := l.Documents(b.Context(), 1)
		return err
	})
	before := c.Documents["service-0"]
	defer func() { c.Documents["service-0"] = before }()
	c.Documents["service-0"] = bytes.Replace(before, []byte("rps: 100"), []byte("rps: 101"), 1)
	timed("s/edit", func() error {
		_, err := l.Apply(b.Context(), 1, c)
		return err
	})
	timed("s/follow", func() error {
		m, err := l.Manifest(b.Context(), 2)
		if err == nil {
			_, err = l.Bodies(b.Context(), m["service-0"])
		}
		return err
	})
}

func largeDocument(service, buckets int) []byte {
	var doc bytes.Buffer
	fmt.Fprintf(&doc, "service: service-%d\nbuckets:\n", service)
	for i := range buckets {
		fmt.Fprintf(&doc, "  - name: bucket-%d\n    match: {caller: caller-%d, procedure: pkg.Service/Method%d}\n    limit: {rps: 100}\n    behavior: deny\n", i, i, i)
	}
	return doc.Bytes()
}
