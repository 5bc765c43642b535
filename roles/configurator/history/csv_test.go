package history_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/roles/configurator/history"
)

// file is the rows of a week before night, each a step apart, from text that
// stands for load i.
func file(header string, step time.Duration, load func(i int, at time.Time) string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	i := 0
	for at := night.Add(-week); at.Before(night); at = at.Add(step) {
		if text := load(i, at); text != "" {
			fmt.Fprintf(&b, "%d,%s\n", at.Unix(), text)
		}
		i++
	}
	return b.String()
}

func readCSV(t *testing.T, b limiter.Bucket, name, content string) history.Bucket {
	t.Helper()
	dir := t.TempDir()
	if name != "" {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.Name = "b"
	q := want(b)
	q.From, q.To = night.Add(-week), night
	got, err := collect(t, history.NewCSV(dir), q)
	if err != nil {
		t.Fatal(err)
	}
	return got["s/b"]
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCSV(t *testing.T) {
	constant := func(text string) func(int, time.Time) string {
		return func(int, time.Time) string { return text }
	}
	plain := file("t_unix,rps", time.Hour, constant("10"))
	tests := []struct {
		name             string
		bucket           limiter.Bucket
		file, content    string
		want             map[string]float64 // instance → highest rps; 0: refused
		step             time.Duration
		refused, noLower string
	}{
		{"rates", limiter.Bucket{}, "s/b.csv", plain, map[string]float64{"": 10}, time.Hour, "", ""},
		{"packed", limiter.Bucket{}, "s/b.csv.gz", zipped(t, plain), map[string]float64{"": 10}, time.Hour, "", ""},
		{"counts", limiter.Bucket{}, "s/b.csv", file("t_unix,count", 5*time.Minute, constant("600")), map[string]float64{"": 2}, 5 * time.Minute, "", ""},
		{"lines that end as on Windows", limiter.Bucket{}, "s/b.csv", strings.ReplaceAll(plain, "\n", "\r\n"), map[string]float64{"": 10}, time.Hour, "", ""},
		{"no file", limiter.Bucket{}, "", "", map[string]float64{"": 0}, time.Minute, "no_data", ""},
		{"no rows", limiter.Bucket{}, "s/b.csv", "t_unix,rps\n", map[string]float64{"": 0}, time.Minute, "no_data", ""},
		{"rows of other times", limiter.Bucket{}, "s/b.csv", "t_unix,rps\n60,1\n120,1\n", map[string]float64{"": 0}, time.Minute, "no_data", ""},
		{"a region each", limiter.Bucket{Scope: limiter.Region}, "s/b.csv", file("t_unix,rps,instance", time.Hour, constant("10,eu")), map[string]float64{"eu": 10}, time.Hour, "", ""},
		{"no number in a row", limiter.Bucket{}, "s/b.csv", file("t_unix,rps", time.Hour, func(i int, _ time.Time) string {
			if i == 50 {
				return "x"
			}
			return "10"
		}), map[string]float64{"": 10}, time.Hour, "", "nan"},
		{"rows missing", limiter.Bucket{}, "s/b.csv", file("t_unix,rps", time.Hour, func(i int, _ time.Time) string {
			if i%10 == 5 {
				return ""
			}
			return "10"
		}), map[string]float64{"": 10}, time.Hour, "", "partial"},
		{"a step that is not on the hour", limiter.Bucket{}, "s/b.csv", strings.ReplaceAll(file("t_unix,rps", 5*time.Minute, constant("10")), "00,10\n", "37,10\n"), map[string]float64{"": 10}, 5 * time.Minute, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := readCSV(t, tt.bucket, tt.file, tt.content)
			if b.Err != nil || len(b.Units) != len(tt.want) {
				t.Fatalf("%d units, %v; want %d", len(b.Units), b.Err, len(tt.want))
			}
			for _, u := range b.Units {
				if _, highest := count(u); math.Abs(highest-tt.want[u.Instance]) > 1e-9 || u.Series.Step != tt.step || u.Refused != tt.refused || u.NoLower != tt.noLower {
					t.Errorf("%q: %v rps, steps of %v, refused %q, not lowered %q; want %v, %v, %q, %q: %v",
						u.Instance, highest, u.Series.Step, u.Refused, u.NoLower, tt.want[u.Instance], tt.step, tt.refused, tt.noLower, u.Notes)
				}
			}
		})
	}
}

func TestCSVInstances(t *testing.T) {
	var b strings.Builder
	b.WriteString("t_unix,rps,instance\n")
	for at := night.Add(-week); at.Before(night); at = at.Add(time.Hour) {
		fmt.Fprintf(&b, "%d,10,x\n%d,15,y\n", at.Unix(), at.Unix())
	}
	tests := []struct {
		name   string
		bucket limiter.Bucket
		want   float64 // rps
	}{
		{"global: the sum", limiter.Bucket{}, 25},
		{"zones: the highest", limiter.Bucket{Scope: limiter.Zone}, 15},
		{"callers: the highest", limiter.Bucket{PerCaller: true}, 15},
		{"callers that share: the sum", limiter.Bucket{Share: limiter.MaxMin}, 25},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := readCSV(t, tt.bucket, "s/b.csv", b.String()).Units[0]
			if _, highest := count(u); highest != tt.want || u.Refused+u.NoLower != "" {
				t.Errorf("%v rps, refused %q, not lowered %q; want %v", highest, u.Refused, u.NoLower, tt.want)
			}
		})
	}
}

func TestCSVErrors(t *testing.T) {
	tests := []struct{ name, file, content, text string }{
		{"no header", "s/b.csv", "", ""},
		{"another header", "s/b.csv", "time,load\n", `line 1: "time,load": want t_unix,count or t_unix,rps`},
		{"no time", "s/b.csv", "t_unix,rps\nx,1\n", `line 2: "x" is no unix time`},
		{"a time before all", "s/b.csv", "t_unix,rps\n-5,1\n", `line 2: "-5" is no unix time`},
		{"columns too many", "s/b.csv", "t_unix,rps\n1,1,1\n", "line 2: 3 columns"},
		{"columns too few", "s/b.csv", "t_unix,rps\n1\n", "line 2: 1 columns"},
		{"a line without end", "s/b.csv", "t_unix,rps\n" + strings.Repeat("1", 1<<20), "line 2: bufio.Scanner: token too long"},
		{"not packed", "s/b.csv.gz", "t_unix,rps\n", "gzip: invalid header"},
		{"cut off", "s/b.csv.gz", zipped(t, file("t_unix,rps", time.Minute, func(i int, _ time.Time) string { return fmt.Sprint(i * i) }))[:1000], "unexpected EOF"},
		{"a directory", "s/b.csv/x", "", "s/b.csv is no regular file"},
		{"two rows a second apart of many instances", "s/b.csv", secondsApart(40, 10), "of 40 instances: more than 20000000 in all"},
		{"instances that are no text", "s/b.csv", "t_unix,rps,instance\n1,1,a\n1,1,caf\xe9\n", `line 3: instance "caf\xe9" of 4 bytes`},
		{"an instance of a long name", "s/b.csv", "t_unix,rps,instance\n1,1," + strings.Repeat("x", 257) + "\n", "of 257 bytes: want at most 256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := readCSV(t, limiter.Bucket{}, tt.file, tt.content)
			if tt.text == "" { // nothing in it is nothing known
				if b.Err != nil || b.Units[0].Refused != "no_data" {
					t.Errorf("%+v", b)
				}
				return
			}
			if b.Err == nil || !strings.Contains(b.Err.Error(), tt.text) {
				t.Errorf("err = %v, want %q in it", b.Err, tt.text)
			}
		})
	}
	t.Run("a name that leads elsewhere", func(t *testing.T) {
		q := history.Query{From: night.Add(-week), To: night, Buckets: []history.Wanted{{Bucket: limiter.Bucket{Service: "..", Name: "../etc/passwd"}}}}
		got, err := collect(t, history.NewCSV(t.TempDir()), q)
		if b := got["../../etc/passwd"]; err != nil || b.Err == nil {
			t.Errorf("%+v, %v", b, err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if _, err := collect(t, history.NewCSV(filepath.Join(t.TempDir(), "none")), want(limiter.Bucket{Name: "b"})); err == nil {
			t.Error("no error")
		}
	})
}

// secondsApart are rows a second apart, at the beginning of the week, of some
// instances.
func secondsApart(instances, rows int) string {
	var b strings.Builder
	b.WriteString("t_unix,rps,instance\n")
	for i := range instances {
		for s := range rows {
			fmt.Fprintf(&b, "%d,1,i%d\n", night.Add(-week).Unix()+int64(s), i)
		}
	}
	return b.String()
}

func TestCSVStepOfFewRows(t *testing.T) {
	tests := []struct {
		name            string
		instances, rows int
		step            time.Duration
	}{
		{"two rows", 1, 2, time.Minute},
		{"four rows of two instances", 2, 2, time.Minute},
		{"as many as are computed from", 1, 10, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := readCSV(t, limiter.Bucket{}, "s/b.csv", secondsApart(tt.instances, tt.rows))
			if b.Err != nil || b.Units[0].Series.Step != tt.step {
				t.Errorf("%+v", b)
			}
		})
	}
}

// TestCSVFewRowsOfManyInstances: a small file cannot claim the memory of a large
// one.
func TestCSVFewRowsOfManyInstances(t *testing.T) {
	content := secondsApart(1024, 2) // 2,048 distances of a second
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := readCSV(t, limiter.Bucket{}, "s/b.csv", content)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; b.Err == nil || used > 100<<20 {
		t.Errorf("%d MiB, %v; want an error and at most 100", used>>20, b.Err)
	}
}

func TestCSVPipe(t *testing.T) {
	for _, name := range []string{"b.csv", "b.csv.gz"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "s"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "s", name), 0o644); err != nil {
				t.Fatal(err)
			}
			q := want(limiter.Bucket{Name: "b"})
			q.From, q.To = night.Add(-week), night
			got, err := collect(t, history.NewCSV(dir), q)
			if b := got["s/b"]; err != nil || b.Err == nil || !strings.Contains(b.Err.Error(), "is no regular file") {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
}

// endsAtRead is a context that ends when it is asked a third time.
type endsAtRead struct {
	context.Context
	asked int
}

func (c *endsAtRead) Err() error {
	if c.asked++; c.asked > 2 {
		return context.Canceled
	}
	return nil
}

func TestCSVEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "s"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The context is looked at before the file and twice in its 10,081 lines. What
	// is wrong with the last one is not seen any more.
	content := file("t_unix,rps", time.Minute, func(int, time.Time) string { return "1" }) + "x\n"
	if err := os.WriteFile(filepath.Join(dir, "s", "b.csv"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	q := want(limiter.Bucket{Name: "b"})
	q.From, q.To = night.Add(-week), night
	ctx := &endsAtRead{Context: t.Context()}
	err := history.NewCSV(dir).Read(ctx, q, func(b history.Bucket) error {
		t.Errorf("%+v is given", b)
		return nil
	})
	if !errors.Is(err, context.Canceled) || ctx.asked > 5 {
		t.Errorf("Read = %v after %d looks at the context, want that it was cancelled at the third", err, ctx.asked)
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("t_unix,rps\n1796000000,1\n1796000060,NaN\n1796000060,-1\n")
	f.Add("t_unix,count,instance\n1796000000,1,eu\n1796000001,1e400,us\n")
	f.Add("t_unix,count\n1,1\n4294967295,5\n")
	f.Fuzz(func(t *testing.T, content string) {
		b := readCSV(t, limiter.Bucket{}, "s/b.csv", content)
		for _, u := range b.Units {
			for _, rps := range u.Series.RPS {
				if policy.Known(rps) && !(rps >= 0 && rps <= 1e12) {
					t.Fatalf("%v rps are learnt", rps)
				}
			}
		}
	})
}
