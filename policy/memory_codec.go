package policy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

const (
	memoryVersion = 1
	// lastSecond bounds times: 1 January 10000.
	lastSecond = 253402300800
)

// MarshalBinary implements encoding.BinaryMarshaler. Times are kept to the second
// and figures as float32, which is far finer than what they are used for: about
// 13 bytes a cycle in which no limit of BaseRPS would have dropped, and 4 for each
// Dropped that is not 0.
//
// The form is: version, 1 if a cycle is open, the number of cycles, the cycles,
// the open one. A cycle is the seconds since the end of the one before, its
// seconds, BaseRPS, Volume, the number of Dropped, those.
func (m Memory) MarshalBinary() ([]byte, error) {
	if len(m.Cycles) > MaxCycles {
		return nil, fmt.Errorf("write memory: %d cycles, at most %d", len(m.Cycles), MaxCycles)
	}
	open := uint64(0)
	if m.Open != nil {
		open = 1
	}
	data := binary.AppendUvarint([]byte{memoryVersion}, open)
	data = binary.AppendUvarint(data, uint64(len(m.Cycles)))
	at := int64(0)
	for _, c := range m.Cycles {
		data = binary.AppendVarint(data, c.From.Unix()-at)
		data = binary.AppendUvarint(data, uint64(max(0, c.To.Unix()-c.From.Unix())))
		data = appendFloat(data, c.BaseRPS)
		data = appendFloat(data, c.Volume)
		n := 0 // they fall: a higher buffer drops less
		for n < len(c.Dropped) && n < buffers && float32(c.Dropped[n]) > 0 {
			n++
		}
		data = append(data, byte(n))
		for _, d := range c.Dropped[:n] {
			data = appendFloat(data, d)
		}
		at = c.To.Unix()
	}
	if m.Open != nil {
		data = binary.AppendVarint(data, m.Open.From.Unix()-at)
		data = appendFloat(data, m.Open.BaseRPS)
	}
	return data, nil
}

func appendFloat(data []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(min(x, math.MaxFloat32))))
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It takes what
// MarshalBinary made, and refuses all else without changing m. No data is the
// zero value.
func (m *Memory) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		*m = Memory{}
		return nil
	}
	if data[0] != memoryVersion {
		return fmt.Errorf("read memory: version %d, want %d", data[0], memoryVersion)
	}
	r := memoryReader{Reader: bytes.NewReader(data[1:])}
	read, err := r.memory()
	if err != nil {
		return fmt.Errorf("read memory: byte %d: %w", len(data)-r.Len(), err)
	}
	*m = read
	return nil
}

// memoryReader reads the parts of a memory and keeps the first error.
type memoryReader struct {
	*bytes.Reader
	at  int64 // seconds since 1970 of the end of the last cycle
	err error
}

func (r *memoryReader) memory() (Memory, error) {
	open := r.uvarint("open cycles", 1)
	n := r.uvarint("cycles", uint64(MaxCycles))
	m := Memory{Cycles: make([]Cycle, 0, n)}
	for range n {
		c := Cycle{From: r.time("start", r.varint("start"))}
		c.To = r.time("end", int64(r.uvarint("length", lastSecond)))
		c.BaseRPS, c.Volume = r.float("base"), r.float("volume")
		c.Dropped = make([]float64, buffers)
		for i := range r.uvarint("buffers that drop", buffers) {
			c.Dropped[i] = r.float("dropped")
			if i > 0 && c.Dropped[i] > c.Dropped[i-1] {
				r.fail("dropped", errors.New("a higher buffer drops more"))
			}
		}
		if r.err != nil {
			return Memory{}, r.err
		}
		m.Cycles = append(m.Cycles, c)
	}
	if open == 1 {
		m.Open = &Cycle{From: r.time("start", r.varint("start")), BaseRPS: r.float("base")}
	}
	if r.err == nil && r.Len() > 0 {
		r.fail("end", fmt.Errorf("%d bytes too many", r.Len()))
	}
	if r.err != nil {
		return Memory{}, r.err
	}
	return m, nil
}

// fail keeps the first error. Data that ends too early is one wherever it ends.
func (r *memoryReader) fail(what string, err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", what, err)
	}
}

// uvarint reads a number of at most most.
func (r *memoryReader) uvarint(what string, most uint64) uint64 {
	v, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		r.fail(what, err)
		return 0
	case v > most:
		r.fail(what, fmt.Errorf("%d, at most %d", v, most))
		return 0
	}
	return v
}

func (r *memoryReader) varint(what string) int64 {
	v, err := binary.ReadVarint(r)
	if err != nil {
		r.fail(what, err)
	}
	return v
}

// time returns the time so many seconds after the last one.
func (r *memoryReader) time(what string, seconds int64) time.Time {
	if seconds < -lastSecond || seconds > lastSecond || r.at+seconds < 0 || r.at+seconds > lastSecond {
		r.fail(what, fmt.Errorf("%d s after %d s is no time", seconds, r.at))
		return time.Time{}
	}
	r.at += seconds
	return time.Unix(r.at, 0).UTC()
}

// float reads a figure, which is finite and not negative.
func (r *memoryReader) float(what string) float64 {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		r.fail(what, err)
		return 0
	}
	x := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[:])))
	if !(x >= 0 && x <= math.MaxFloat32) {
		r.fail(what, fmt.Errorf("%v is no load", x))
		return 0
	}
	return x
}
