package statefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

var compare = cmp.Options{
	cmp.Comparer(func(a, b *grlv1.ZoneSize) bool { return a.String() == b.String() }),
}

// state returns a state with so many cells of one decider, and one of another.
func state(cells int) State {
	s := State{
		Configuration: &limiter.Configuration{Epoch: 3, Revision: 7, PublicURL: "https://grl.example.com", Services: []limiter.Service{{
			Name: "pay",
			Buckets: []limiter.Bucket{
				{Service: "pay", Name: "all", LimitRPS: 100, Behavior: limiter.Deny, HoldOnSilence: true},
				{Service: "pay", Name: "each", LimitRPS: 10, PerCaller: true, Match: limiter.Match{Caller: "*"}},
			},
		}}},
		Zones: []*grlv1.ZoneSize{{Zone: "z1", Region: "r1", Aggregators: 2}},
		Deciders: []Decider{
			{Name: "global", Stamp: law.Stamp{Epoch: 3, Sequence: 9, Step: 1}, Heard: time.UnixMilli(1_700_000_000_123)},
			{Name: "r1", Stamp: law.Stamp{Epoch: 1, Sequence: 1}, Heard: time.UnixMilli(1_700_000_000_000), Rows: []Row{
				{Cell: limiter.CellID{Bucket: "pay/all", Instance: "r1", Class: "gold"}, Verdict: law.Verdict{Admit: 1}},
			}},
		},
	}
	for i := range cells {
		s.Deciders[0].Rows = append(s.Deciders[0].Rows, Row{
			Cell:    limiter.CellID{Bucket: "pay/each", Caller: fmt.Sprint("caller", i)},
			Verdict: law.Verdict{Admit: 1 / float64(int(1)<<(i%16)), Offered: float64(i), Hosts: float64(i % 7), Hot: i%3 == 0},
			Share:   0.25,
		})
	}
	return s
}

func TestSaveAndLoad(t *testing.T) {
	for _, cells := range []int{0, 1, 3, 2*wire.MaxCells + 1} {
		f := New(filepath.Join(t.TempDir(), "new", "dir"), "aggregator", "z1")
		if got, err := f.Load(); err != nil || !cmp.Equal(got, State{}) {
			t.Fatalf("Load before any Save = %v, %v, want nothing", got, err)
		}
		want := state(cells)
		for range 2 { // over the old file, too
			if err := f.Save(want); err != nil {
				t.Fatal(err)
			}
		}
		got, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, compare); diff != "" {
			t.Errorf("%d cells (-saved +loaded):\n%s", cells, diff)
		}
		names, err := os.ReadDir(filepath.Dir(f.path))
		if err != nil || len(names) != 1 {
			t.Errorf("files %v, %v, want one", names, err)
		}
		for path, want := range map[string]os.FileMode{f.path: 0o600, filepath.Dir(f.path): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, %v, want %v", path, info.Mode().Perm(), err, want)
			}
		}
	}
}

// The configuration is encoded once; another one, and other zones, are seen.
func TestSavedConfigurationChanges(t *testing.T) {
	f := New(t.TempDir(), "client", "")
	s := state(1)
	if err := f.Save(s); err != nil {
		t.Fatal(err)
	}
	s.Zones = []*grlv1.ZoneSize{{Zone: "z1", Region: "r1", Aggregators: 3}, {Zone: "z2", Region: "r1", Aggregators: 1}}
	for revision := range uint64(2) {
		c := *s.Configuration
		c.Revision += revision
		s.Configuration = &c
		if err := f.Save(s); err != nil {
			t.Fatal(err)
		}
		got, err := f.Load()
		if diff := cmp.Diff(s, got, compare); err != nil || diff != "" {
			t.Errorf("error %v (-saved +loaded):\n%s", err, diff)
		}
	}
}

// Fault 30: a file that is cut anywhere, or has one wrong byte, is damaged.
func TestDamagedFiles(t *testing.T) {
	f := New(t.TempDir(), "aggregator", "z1")
	if err := f.Save(state(2)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(f.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Load(); err == nil || !cmp.Equal(got, State{}) {
			t.Fatalf("%s: Load = %v, %v, want an error and nothing", what, got, err)
		}
	}
	for n := range good {
		refused(fmt.Sprintf("cut to %d of %d bytes", n, len(good)), good[:n])
		for _, flip := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[n] ^= flip
			refused(fmt.Sprintf("byte %d of %d flipped by %#x", n, len(good), flip), bad)
		}
	}
	refused("zeros behind it", append(bytes.Clone(good), 0, 0, 0, 0))
	if err := f.Save(state(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err != nil {
		t.Errorf("Load after a good one was saved over it: %v", err)
	}
}

// A crash between the two steps of Save leaves a whole old file, and a new one
// in any state beside it.
func TestCrashWhileSaving(t *testing.T) {
	f := New(t.TempDir(), "aggregator", "z1")
	old, next := state(1), state(3)
	data, err := f.encode(next)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n <= len(data); n += 7 {
		if err := f.Save(old); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.path+".new", data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := f.Load()
		if diff := cmp.Diff(old, got, compare); err != nil || diff != "" {
			t.Fatalf("crash after %d bytes: %v (-old +loaded):\n%s", n, err, diff)
		}
		if err := f.Save(next); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Load(); err != nil || !cmp.Equal(next, got, compare) {
			t.Fatalf("saved after a crash at %d bytes: %v, %v", n, got, err)
		}
	}
}

// sealed returns a file of that format and those records with a right checksum.
func sealed(format uint32, records []byte) []byte {
	out := append(binary.BigEndian.AppendUint32([]byte(magic), format), records...)
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, table))
}

func TestForeignFiles(t *testing.T) {
	mine := appendRecord(nil, recordNode, []byte("aggregator z1"))
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"of another zone":      {sealed(format, appendRecord(nil, recordNode, []byte("aggregator z2"))), `it is of "aggregator z2", not of "aggregator z1"`},
		"of a newer format":    {sealed(format+1, mine), "format 3; this version reads formats 1 and 2"},
		"an unknown record":    {sealed(format, appendRecord(mine, 99, nil)), "unknown kind 99"},
		"a record too long":    {sealed(format, append(mine, recordDirective, 200, 1)), "longer than the file"},
		"of nobody":            {sealed(format, nil), "does not say whose it is"},
		"no configuration":     {sealed(format, appendRecord(mine, recordConfiguration, []byte{0xff})), "configuration"},
		"a directive cut":      {sealed(format, appendRecord(mine, recordDirective, []byte{0, 0xff})), "directive"},
		"no time":              {sealed(format, appendRecord(mine, recordDirective, nil)), "without a time"},
		"a cell nobody named":  {sealed(format, appendRecord(mine, recordDirective, []byte{0, 0x3a, 1, 0, 0x42, 4, 0, 0, 0, 0})), "cell 0 of 0 named ones"},
		"something else":       {[]byte("SQLite format 3\x00, or so"), "not a state file"},
		"a limits file's text": {[]byte("service: pay\nbuckets: []\n"), "not a state file"},
	} {
		f := New(t.TempDir(), "aggregator", "z1")
		if err := os.WriteFile(f.path, tt.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Load(); err == nil || !strings.Contains(err.Error(), tt.want) || !cmp.Equal(got, State{}) {
			t.Errorf("%s: Load = %v, %v, want nothing and %q", name, got, err, tt.want)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Now() // with a monotonic reading, as the caller's clock has
	for _, tt := range []struct {
		name  string
		heard time.Time
		want  time.Duration
	}{
		{"some time ago", now.Add(-3 * time.Second).Round(0), 3 * time.Second},
		{"a clock that went back", now.Add(time.Hour).Round(0), 0},
	} {
		d := Decider{Heard: tt.heard}
		if got := d.Age(now); got != tt.want {
			t.Errorf("%s: Age = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// journal is a log that is read while it is written.
type journal struct {
	mu sync.Mutex
	b  strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// Fault 28: a disk that is full, and one that cannot be written, are logged
// once each; the last whole file stays, and the next one goes when it can.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		f := New(t.TempDir(), "aggregator", "z1")
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex // guards s and changed
		s, changed := state(1), true
		set := func(sequence uint64, c bool) {
			mu.Lock()
			defer mu.Unlock()
			s, changed = state(1), c
			s.Deciders[0].Stamp.Sequence = sequence
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Keep(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(time.Time) (State, bool) {
				mu.Lock()
				defer mu.Unlock()
				return s, changed
			})
		}()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		kept := func(what string, want uint64) {
			t.Helper()
			if got, err := f.Load(); err != nil || got.Deciders[0].Stamp.Sequence != want {
				t.Fatalf("%s: %v, %v, want directive %d", what, got, err, want)
			}
		}
		pass(law.T + 1)
		kept("at first", 9)
		set(9, false)
		before, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		pass(3 * law.T)
		if after, err := os.Stat(f.path); err != nil || !os.SameFile(before, after) {
			t.Errorf("written again although nothing changed: %v", err)
		}
		full := func() {
			if err := os.Symlink("/dev/full", f.path+".new"); err != nil {
				t.Fatal(err)
			}
		}
		set(10, true)
		for range 3 {
			full()
			pass(law.T)
			set(10, false) // the one that failed is tried again
		}
		kept("while the disk was full", 9)
		if got := strings.Count(log.String(), "no space left"); got != 1 {
			t.Errorf("logged %d times that the disk is full, want once:\n%s", got, log.String())
		}
		pass(law.T)
		kept("when it had space again", 10)
		if !strings.Contains(log.String(), "keeps state on disk again") {
			t.Errorf("did not log that it goes again:\n%s", log.String())
		}
		set(11, true)
		cancel()
		<-done
		kept("at the end", 11)
	})
}

func TestSaveWhereNoDirectoryCanBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := New(filepath.Join(path, "dir"), "client", "h")
	if err := f.Save(state(1)); err == nil || !strings.HasPrefix(err.Error(), "save state: ") {
		t.Errorf("Save below a file: %v, want an error", err)
	}
	if _, err := f.Load(); err == nil {
		t.Error("Load below a file: no error")
	}
}

// Opening a pipe waits until somebody writes, and a node loads its state before
// it serves.
func TestPipeInPlaceOfAFile(t *testing.T) {
	f := New(t.TempDir(), "client", "h")
	if err := syscall.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err == nil || !strings.HasSuffix(err.Error(), "client.state: not a regular file") {
		t.Errorf("Load of a pipe: %v, want an error", err)
	}
	if err := f.Save(state(1)); err != nil {
		t.Errorf("Save over a pipe: %v", err)
	}
	if _, err := f.Load(); err != nil {
		t.Errorf("Load of what was saved over a pipe: %v", err)
	}
}

// Whatever a file says, reading it does not stop the node; and what is read can
// be saved and read again.
func FuzzLoad(f *testing.F) {
	file := New(f.TempDir(), "aggregator", "z1")
	for _, cells := range []int{0, 3} {
		data, err := file.encode(state(cells))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[len(magic)+4 : len(data)-4])
	}
	f.Fuzz(func(t *testing.T, records []byte) {
		file := New("", "aggregator", "z1")
		s, err := file.decode(sealed(format, records))
		if err != nil {
			return
		}
		data, err := file.encode(s)
		if err != nil {
			t.Fatalf("read but cannot be saved: %v", err)
		}
		if _, err := file.decode(data); err != nil {
			t.Fatalf("read, saved and not read again: %v", err)
		}
	})
}

// BenchmarkEncode is what a large aggregator writes at each T, without the disk.
func BenchmarkEncode(b *testing.B) {
	f := New(b.TempDir(), "aggregator", "z1")
	s := state(10_000)
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		data, err := f.encode(s)
		if err != nil {
			b.Fatal(err)
		}
		bytes = len(data)
	}
	b.ReportMetric(float64(bytes), "B/file")
}
