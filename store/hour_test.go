package store

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// drawCounts draws a minute; admitted is usually offered - dropped.
func drawCounts(t *rapid.T) counts {
	small := rapid.Uint64Range(0, 500)
	c := counts{offered: small.Draw(t, "offered"), shadowDropped: small.Draw(t, "shadow"), highestSecond: small.Draw(t, "highest"), candidateDropped: small.Draw(t, "candidate")}
	if c[offered] > 0 {
		c[dropped] = rapid.Uint64Range(0, c[offered]).Draw(t, "dropped")
	}
	c[admitted] = c[offered] - c[dropped]
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		for i := range c {
			c[i] = rapid.Uint64Range(0, maxCount).Draw(t, "any")
		}
	}
	return c
}

func TestHourIsDecodedAsEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want hour
		for range rapid.IntRange(1, 70).Draw(t, "minutes") {
			want[rapid.IntRange(0, 59).Draw(t, "minute")] = drawCounts(t)
		}
		if want == (hour{}) {
			want[59][shadowDropped] = 1
		}
		got, err := decodeHour(want.encode(nil))
		if err != nil {
			t.Fatalf("decodeHour: %v", err)
		}
		if got != want {
			t.Fatalf("decoded %v, want %v", got, want)
		}
	})
}

func TestDecodeHourRefuses(t *testing.T) {
	one := hour{0: {offered: 300, admitted: 300}}
	good := one.encode(nil) // format, bitmap 1, mask 1, 300 as two bytes
	tests := []struct {
		name string
		buf  []byte
	}{
		{"nothing", nil},
		{"other format", append([]byte{2}, good[1:]...)},
		{"idle hour", (&hour{}).encode(nil)},
		{"idle minute", []byte{1, 3, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0}},
		{"minute 60", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0x10, 1, 5}},
		{"seventh column", []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0x40, 5}},
		{"column of zeros", []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 5, 5, 0}},
		{"cut off", good[:len(good)-1]},
		{"a byte too many", append(bytes.Clone(good), 0)},
		{"longer varint than needed", []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0x85, 0}},
		{"above the highest count", []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if h, err := decodeHour(tt.buf); err == nil {
				t.Errorf("decodeHour(% x) = %v, want an error", tt.buf, h)
			}
		})
	}
}

func TestCountsStopAtTheHighest(t *testing.T) {
	c := counts{offered: maxCount - 1, highestSecond: 7}
	c.addUp(counts{offered: maxCount, highestSecond: 5})
	if want := (counts{offered: maxCount, highestSecond: 7}); c != want {
		t.Errorf("addUp = %v, want %v", c, want)
	}
	if got := addCount(1<<63, 1<<63); got != maxCount {
		t.Errorf("addCount(2^63, 2^63) = %d, want %d", got, uint64(maxCount))
	}
}

func FuzzDecodeHour(f *testing.F) {
	busy, odd := hour{}, hour{59: {admitted: 1, highestSecond: maxCount}}
	for m := range busy {
		busy[m] = counts{offered: 1200, admitted: 900, dropped: 300, highestSecond: 31}
	}
	f.Add(busy.encode(nil))
	f.Add(odd.encode(nil))
	f.Fuzz(func(t *testing.T, buf []byte) {
		h, err := decodeHour(buf)
		if err != nil {
			return
		}
		if again := h.encode(nil); !bytes.Equal(again, buf) {
			t.Fatalf("% x decodes to what encodes as % x", buf, again)
		}
	})
}
