package ledger

import (
	"bytes"
	"errors"
	"testing"

	"grl/store"
)

func FuzzDecodeResults(f *testing.F) {
	one, two := Result{Bucket: "payments/reads", Data: []byte{0, 0xff}}, Result{}
	f.Add(two.encode(one.encode(nil)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, buf []byte) {
		var results []Result
		err := decodeResults(buf, func(r Result) error {
			results = append(results, r)
			return nil
		})
		if err != nil && !errors.Is(err, errResults) {
			t.Fatal(err)
		}
		var again []byte
		for _, r := range results {
			again = r.encode(again)
		}
		var compared int
		if err := decodeResults(again, func(r Result) error {
			if i := compared; r.Bucket != results[i].Bucket || !bytes.Equal(r.Data, results[i].Data) {
				t.Errorf("result %d = %+v, want %+v", i, r, results[i])
			}
			compared++
			return nil
		}); err != nil || compared != len(results) {
			t.Errorf("%d results, %v, want %d", compared, err, len(results))
		}
		if err == nil && len(again) > len(buf) {
			t.Errorf("% x has %d results, which take %d bytes", buf, len(results), len(again))
		}
	})
}

func FuzzDecompress(f *testing.F) {
	f.Add(compress([]byte("results")))
	f.Add(compress(make([]byte, 2000)))
	f.Fuzz(func(t *testing.T, packed []byte) {
		body, err := decompress(store.Record{Key: "k", Version: 1, Value: packed}, 1000)
		if err != nil && !errors.Is(err, store.ErrDamaged) || len(body) > 1000 {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	})
}
