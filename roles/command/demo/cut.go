//go:build ignore

// Cut writes the excerpt that grl demo replays:
//
//	go run cut.go rpc_shop_2022.csv.gz testdata/rpc_shop_2022.csv.gz
//
// It cuts the gaps that the recording has between its windows, and of all
// stretches of a minute with about 100 requests a second keeps the one that,
// played in a loop, is the most even over what the demo plays in 50 ms of its
// surge: a sidecar takes a burst or a lull of that length for a change.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"log"
	"math"
	"os"
	"sort"
	"strconv"
)

const (
	span   = 60_000 // ms, of the excerpt
	gap    = 2_000  // ms; what is longer is cut
	bin    = 50     // ms, in which the excerpt is judged
	window = 2_250  // ms, 50 at 45 times the speed

	leastRPS, mostRPS = 95.0, 105.0
	kindsOfAll        = 19 // pairs of caller and procedure in the trace
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: go run cut.go SOURCE TARGET")
	}
	rows, at := read(os.Args[1])
	start := choose(rows, at)
	write(os.Args[2], rows, at, start)
}

// read returns the rows and, without the gaps, their times in ms.
func read(name string) (rows [][]string, at []int) {
	f, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		log.Fatal(err)
	}
	rows, err = csv.NewReader(z).ReadAll()
	if err != nil {
		log.Fatal(err)
	}
	rows = rows[1:] // the header
	last, cut := 0, 0
	for _, row := range rows {
		seconds, err := strconv.ParseFloat(row[0], 64)
		if err != nil {
			log.Fatal(err)
		}
		ms := int(math.Round(seconds * 1000))
		if ms-last > gap {
			cut += ms - last
		}
		last = ms
		at = append(at, ms-cut)
	}
	return rows, at
}

// choose returns where the excerpt starts, in ms.
func choose(rows [][]string, at []int) (start int) {
	least := math.Inf(1)
	for s := 0; s+span <= at[len(at)-1]; s += 1000 {
		from, to := sort.SearchInts(at, s), sort.SearchInts(at, s+span)
		rps := float64(to-from) / (span / 1000)
		if rps < leastRPS || rps > mostRPS {
			continue
		}
		kinds := map[string]bool{}
		sums := make([]float64, 2*span/bin+1) // of the excerpt twice, since it loops
		for i := from; i < to; i++ {
			kinds[rows[i][1]+rows[i][2]] = true
			sums[1+(at[i]-s)/bin]++
			sums[1+(at[i]-s+span)/bin]++
		}
		for i := 1; i < len(sums); i++ {
			sums[i] += sums[i-1]
		}
		uneven := spread(sums)
		if len(kinds) == kindsOfAll && uneven < least {
			start, least = s, uneven
			log.Printf("at %d s: %.1f rps; any 2.25 s within %.0f %% of that", s/1000, rps, 100*uneven)
		}
	}
	return start
}

// spread returns the greatest distance of any window from the mean, in units of
// the mean.
func spread(sums []float64) (uneven float64) {
	n := span / bin
	mean := sums[n] / float64(n) * float64(window/bin)
	for i := range n {
		uneven = max(uneven, math.Abs((sums[i+window/bin]-sums[i])/mean-1))
	}
	return uneven
}

func write(name string, rows [][]string, at []int, start int) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(z, "t_seconds,caller,procedure,status")
	for i, row := range rows {
		if at[i] < start || at[i] >= start+span {
			continue
		}
		ms := at[i] - start
		fmt.Fprintf(z, "%d.%03d,%s,%s,%s\n", ms/1000, ms%1000, row[1], row[2], row[3])
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
