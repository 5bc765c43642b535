package policy

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// halfYear returns the memory of a policy that ran for half a year of nights.
func halfYear(t testing.TB) Memory {
	t.Helper()
	series := load(monday.Add(31*week), 31*7, time.Hour, 1000, 3)
	for i := 30 * 24; i < len(series.RPS); i += 19 * 24 {
		series.RPS[i] *= 4 // surprises
	}
	all := nights(nightly(), series, monday.Add(4*week), 27*7)
	return all[len(all)-1].Memory
}

func TestMemoryComesBack(t *testing.T) {
	m := halfYear(t)
	if len(m.Cycles) != 182 || m.Open == nil {
		t.Fatalf("%d cycles, want half a year of nights", len(m.Cycles))
	}
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if a := float64(len(data)) / float64(len(m.Cycles)); a > 18 {
		t.Errorf("%.1f bytes a cycle", a)
	}
	var got Memory
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	again, err := got.MarshalBinary()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("written again it differs (%v)", err)
	}
	if !got.Open.From.Equal(m.Open.From) || math.Abs(got.Open.BaseRPS/m.Open.BaseRPS-1) > 1e-6 {
		t.Errorf("open %v, want %v", got.Open, m.Open)
	}
	if math.Abs(got.buffer().buffer-m.buffer().buffer) > 1e-6 {
		t.Errorf("buffer %v, want %v", got.buffer(), m.buffer())
	}
	for i, c := range got.Cycles {
		want := m.Cycles[i]
		if !c.From.Equal(want.From) || !c.To.Equal(want.To) ||
			!slices.EqualFunc(c.Dropped, want.Dropped, func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*b }) {
			t.Fatalf("cycle %d is %v, want %v", i, c, want)
		}
	}
}

func TestMemoryOfNothing(t *testing.T) {
	got := Memory{Open: &Cycle{}}
	if err := got.UnmarshalBinary(nil); err != nil || got.Open != nil || got.Cycles != nil {
		t.Errorf("nothing is %v, %v", got, err)
	}
	data, err := Memory{}.MarshalBinary()
	if err != nil || got.UnmarshalBinary(data) != nil || got.Open != nil || len(got.Cycles) != 0 {
		t.Errorf("the zero value is %v, %v", got, err)
	}
}

func TestMemoryRefuses(t *testing.T) {
	cycle := Cycle{From: monday, To: monday.Add(day), BaseRPS: 10, Volume: 100, Dropped: make([]float64, buffers)}
	written := func(change func(*Cycle)) []byte {
		c := cycle
		c.Dropped = slices.Clone(cycle.Dropped)
		change(&c)
		data, err := Memory{Cycles: []Cycle{c}}.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good := written(func(*Cycle) {})
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"another version", append([]byte{9}, good[1:]...), "version 9, want 1"},
		{"cut off", good[:len(good)-3], "volume: unexpected EOF"},
		{"nothing behind the version", []byte{1}, "open cycles: unexpected EOF"},
		{"too long", append(slices.Clone(good), 0), "1 bytes too many"},
		{"too many cycles", []byte{1, 0, 0xff, 0xff, 0x03}, "cycles: 65535, at most 219"},
		{"two open", []byte{1, 2, 0}, "open cycles: 2, at most 1"},
		{"negative base", written(func(c *Cycle) { c.BaseRPS = -1 }), "base: -1 is no load"},
		{"no number", written(func(c *Cycle) { c.Volume = math.NaN() }), "volume: NaN is no load"},
		{"before 1970", written(func(c *Cycle) { c.From = time.Unix(-1, 0) }), "start: -1 s after 0 s is no time"},
		{"a higher buffer drops more", written(func(c *Cycle) { c.Dropped[0], c.Dropped[1] = 1, 2 }), "a higher buffer drops more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Memory{Open: &cycle}
			err := m.UnmarshalBinary(tt.data)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if m.Open != &cycle {
				t.Error("a refused memory changed the old one")
			}
		})
	}
	if _, err := (Memory{Cycles: make([]Cycle, MaxCycles+1)}).MarshalBinary(); err == nil {
		t.Error("a memory with too many cycles was written")
	}
}

func FuzzMemory(f *testing.F) {
	data, err := halfYear(f).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{1, 0, 1, 0, 0})
	series := load(monday.Add(4*week), 28, time.Hour, 100, 1)
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Memory
		if m.UnmarshalBinary(data) != nil {
			return
		}
		if len(m.Cycles) > MaxCycles {
			t.Fatalf("%d cycles", len(m.Cycles))
		}
		if _, err := m.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		r := newPeak(nightly()).Compute(Input{Now: monday.Add(4 * week), Series: series, Memory: m})
		if b := r.Memory.buffer().buffer; !(b >= 1 && b <= mostBuffer) || !(r.LimitRPS > 100) {
			t.Fatalf("buffer %v, limit %v", b, r.LimitRPS)
		}
	})
}

func TestMemoryIsTheSameHoweverOftenANightRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := load(monday.Add(5*week), 35, time.Hour, 100, rapid.Uint64().Draw(t, "seed"))
		var once, often Memory
		for night := range 6 {
			now := monday.Add(4*week + time.Duration(night)*day)
			once = newPeak(nightly()).Compute(Input{Now: now, Series: series, Memory: once}).Memory
			for range rapid.IntRange(1, 4).Draw(t, "runs") {
				often = newPeak(nightly()).Compute(Input{Now: now, Series: series, Memory: often}).Memory
				now = now.Add(time.Duration(rapid.IntRange(0, 6*3600).Draw(t, "later")) * time.Second)
			}
		}
		a, errA := once.MarshalBinary()
		b, errB := often.MarshalBinary()
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("runs in between changed what is learnt: %v, %v", once, often)
		}
	})
}
