package backtest

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name     string
		text     string
		step     time.Duration // given
		want     []float64     // requests per second
		wantStep time.Duration
		repeated int
	}{
		{"rates", "t_unix,rps\n60,1.5\n120,0\n180,2e1\n", 0, []float64{1.5, 0, 20}, time.Minute, 0},
		{"counts", "t_unix,count\n0,120\n60,60\n", 0, []float64{2, 1}, time.Minute, 0},
		{"no line feed at the end", "t_unix,count\r\n0,120\r\n60,60", 0, []float64{2, 1}, time.Minute, 0},
		{"a gap is unknown", "t_unix,rps\n0,1\n180,4\n240,5\n", 0, []float64{1, nan, nan, 4, 5}, time.Minute, 0},
		{"the step is given", "t_unix,rps\n0,1\n120,4\n", time.Minute, []float64{1, nan, 4}, time.Minute, 0},
		{"one row", "t_unix,rps\n0,1\n", time.Hour, []float64{1}, time.Hour, 0},
		{"the higher of two rows", "t_unix,rps\n0,1\n60,7\n60,3\n120,2\n120,5\n", 0, []float64{1, 7, 5}, time.Minute, 2},
		{"days", "t_unix,count\n0,86400\n86400,172800\n", 0, []float64{1, 2}, day, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Read(strings.NewReader(tt.text), tt.step)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, f.Series.RPS, cmpopts.EquateNaNs()); diff != "" || f.Series.Step != tt.wantStep || f.Repeated != tt.repeated {
				t.Errorf("steps of %v, %d repeated, want %v and %d (-want +got):\n%s", f.Series.Step, f.Repeated, tt.wantStep, tt.repeated, diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		step       time.Duration
		want       string
	}{
		{"nothing", "", 0, "line 1: no header"},
		{"another header", "time,value\n0,1\n", 0, `line 1: header "time,value": want`},
		{"no rows", "t_unix,rps\n", 0, "line 2: no rows"},
		{"one row without a step", "t_unix,rps\n0,1\n", 0, "line 3: one row does not tell the step"},
		{"not a number", "t_unix,rps\n0,1\n60,NaN\n", 0, `line 3: value "NaN": want a number from 0`},
		{"infinite", "t_unix,rps\n0,1\n60,+Inf\n", 0, `line 3: value "+Inf"`},
		{"too large", "t_unix,rps\n0,1\n60,1e13\n", 0, `line 3: value "1e13"`},
		{"negative", "t_unix,rps\n0,1\n60,-1\n", 0, `line 3: value "-1"`},
		{"unordered", "t_unix,rps\n0,1\n120,1\n60,1\n", 0, "line 4: 60 comes after 120"},
		{"a time of the past", "t_unix,rps\n-60,1\n0,1\n", 0, `line 2: time "-60"`},
		{"no whole second", "t_unix,rps\n0.5,1\n", 0, `line 2: time "0.5"`},
		{"three columns", "t_unix,rps\n0,1,2\n", 0, `line 2: "0,1,2": want two columns`},
		{"an empty line", "t_unix,rps\n0,1\n\n60,1\n", 0, `line 3: "": want two columns`},
		{"a long line", "t_unix,rps\n0,1\n" + strings.Repeat("1", 5000) + "\n", 0, "line 3: longer than 256 bytes"},
		{"off the grid", "t_unix,rps\n0,1\n60,1\n150,1\n210,1\n", 0, "line 4: 150 is not whole steps of 60 s after"},
		{"off the given grid", "t_unix,rps\n0,1\n60,1\n", time.Hour, "line 3: 60 is not whole steps of 3600 s after"},
		{"too long", "t_unix,rps\n0,1\n1,1\n9999999999,1\n", 0, "line 4: 9999999999 is more than 8388608 steps of 1 s"},
		{"a long step", "t_unix,rps\n0,1\n99999999,1\n", 0, "a step of 27777h46m39s: want whole seconds, at most a week"},
		{"a part of a second", "t_unix,rps\n0,1\n", 1500 * time.Millisecond, "a step of 1.5s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text), tt.step)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	const csv = "t_unix,rps\n0,1\n60,2\n"
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(csv))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	meta := `{"other": 1, "series": {"plain": {"anomalies": [[0, 60, "labelled"], [9, 3, "missing"]]}, "bad": {"anomalies": [[0, "x", "labelled"]]}}}`
	tests := []struct {
		name    string
		file    string
		data    string
		meta    string
		windows int
		want    string // of the error
	}{
		{"plain", "plain.csv", csv, meta, 2, ""},
		{"gzipped", "zipped.csv.gz", zipped.String(), meta, 0, ""},
		{"without a meta.json", "plain.csv", csv, "", 0, ""},
		{"not gzipped", "zipped.csv.gz", csv, "", 0, "zipped.csv.gz: gzip: invalid header"},
		{"cut short", "zipped.csv.gz", zipped.String()[:zipped.Len()-9], "", 0, "unexpected EOF"},
		{"a wrong window", "bad.csv", csv, meta, 0, "meta.json: anomaly 1 of bad: want [from, to, kind]"},
		{"a meta.json that is none", "plain.csv", csv, "[", 0, "meta.json: unexpected end of JSON input"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{tt.file: tt.data, "meta.json": tt.meta} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			f, err := ReadFile(filepath.Join(dir, tt.file), 0)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("ReadFile = %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil || len(f.Series.RPS) != 2 || len(f.Anomalies) != tt.windows || f.Name != strings.TrimSuffix(strings.TrimSuffix(tt.file, ".gz"), ".csv") {
				t.Errorf("ReadFile = %+v, %v, want 2 steps and %d windows", f, err, tt.windows)
			}
		})
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "missing.csv"), 0); err == nil {
		t.Error("a file that is not there was read")
	}
}

// FuzzRead takes whatever comes: it is refused, or all of it is a load.
func FuzzRead(f *testing.F) {
	f.Add("t_unix,count\n0,1\n60,2\n60,3\n180,4\n")
	f.Add("t_unix,rps\n0,1e12\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(strings.NewReader(text), 0)
		if err != nil {
			return
		}
		if n := len(file.Series.RPS); n == 0 || n > maxSteps || file.Series.Step <= 0 {
			t.Fatalf("%d steps of %v", n, file.Series.Step)
		}
		for _, x := range file.Series.RPS {
			if x < 0 || x > maxRPS {
				t.Fatalf("load %v", x)
			}
		}
	})
}
