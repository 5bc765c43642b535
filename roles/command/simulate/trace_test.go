package simulate

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"grl/limiter"
)

// FuzzReadTrace reads hostile files: each is refused with the line, or every
// line of it counts once.
func FuzzReadTrace(f *testing.F) {
	const head = "t_seconds,caller,procedure,status\n"
	for _, text := range []string{
		"", head, head + "0,a,b,-\n", head + "1e5,a,\"b\n\",200\n0.5,,,\n", head + "-0,a,b,-\n", head + "+Inf,a,b,-\n", head + "1,a,b\n",
		head + "1,\"a,b,-\n", "\ufeff" + head, strings.ReplaceAll(head, "\n", "\r\n") + "3,a,b,c\r\n", head + "2678400,a,b,-\n", head + "0x1p3,a,b,-\n",
		"t_seconds,caller,procedure\n1,a,b\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	dir := f.TempDir()
	placed := regexp.MustCompile(`line \d+|no requests|gzip|EOF`)
	f.Fuzz(func(t *testing.T, text []byte, zipped bool) {
		path := filepath.Join(dir, "trace.csv")
		data := text
		if zipped {
			path += ".gz"
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(text) // into memory
			_ = w.Close()
			data = b.Bytes()
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := ReadTrace(path)
		if err != nil {
			if !placed.MatchString(err.Error()) {
				t.Fatalf("ReadTrace(%q) = %v, which has no line", text, err)
			}
			return
		}
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("ReadTrace took %q, which is no CSV: %v", text, err)
		}
		var sum float64
		for _, n := range trace.Offered(limiter.Match{}) {
			sum += n
		}
		if sum != float64(len(rows)-1) {
			t.Fatalf("ReadTrace(%q) has %v requests, want %d", text, sum, len(rows)-1)
		}
		if mean := meanRPS(trace); !(mean >= 0.001 && math.Abs(mean*float64(trace.Seconds())/sum-1) < 0.006) && mean != 0.001 {
			t.Fatalf("meanRPS(%q) = %v, want %v over %d", text, mean, sum, trace.Seconds())
		}
	})
}

// TestReadTraceCutShort has a gzipped file that ends early.
func TestReadTraceCutShort(t *testing.T) {
	whole, err := os.ReadFile("../demo/testdata/rpc_shop_2022.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.csv.gz")
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrace(path); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("ReadTrace of half a file = %v, want unexpected EOF", err)
	}
}
