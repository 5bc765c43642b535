package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// minutesPerHour is also the number of bits in use of the bitmap below.
const minutesPerHour = 60

// The columns of a minute.
const (
	offered = iota
	admitted
	dropped
	shadowDropped
	highestSecond
	candidateDropped
	columns
)

// counts is one minute: requests, each at most maxCount.
type counts [columns]uint64

// maxCount is the highest count an INTEGER of SQLite holds; sums stop there.
const maxCount = math.MaxInt64

// add adds what another zone counted in the same minute.
func (c *counts) add(other counts) {
	for i := range columns {
		c[i] = addCount(c[i], other[i])
	}
}

// addUp adds what the same cell and zone counted in another part of the minute:
// counts add, but the highest second is one of the two.
func (c *counts) addUp(other counts) {
	highest := max(c[highestSecond], other[highestSecond])
	c.add(other)
	c[highestSecond] = highest
}

// addCount adds without running over: both may be any number.
func addCount(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return maxCount
	}
	return min(sum, maxCount)
}

// hour is one cell in one zone for an hour. The zero value is idle.
type hour [minutesPerHour]counts

// maxima returns the highest minute and the highest second of offered requests.
func (h *hour) maxima() (minute, second uint64) {
	for i := range h {
		minute = max(minute, h[i][offered])
		second = max(second, h[i][highestSecond])
	}
	return minute, second
}

// hourFormat is the first byte of a packed hour.
const hourFormat = 1

// hourPrefix is the length of format, bitmap and mask in bytes.
const hourPrefix = 1 + 8 + 1

var errHour = errors.New("not a packed hour")

// encode appends the packed hour to buf:
//
//	1 byte   format, 1
//	8 bytes  bitmap of the minutes that are not idle, bit 0 the first, little endian
//	1 byte   mask of the columns that are not zero in all minutes, bit 0 offered
//	         then for each such column a varint for each minute of the bitmap
//
// Admitted is stored as its difference to offered - dropped, which is nothing
// as long as the counts are consistent. There is one encoding for each hour.
func (h *hour) encode(buf []byte) []byte {
	packed := *h
	var bitmap uint64
	var mask byte
	for m := range packed {
		if packed[m] == (counts{}) {
			continue
		}
		bitmap |= 1 << m
		packed[m][admitted] = zigzag(packed[m][admitted] - (packed[m][offered] - packed[m][dropped]))
		for i, v := range packed[m] {
			if v != 0 {
				mask |= 1 << i
			}
		}
	}
	buf = append(buf, hourFormat)
	buf = binary.LittleEndian.AppendUint64(buf, bitmap)
	buf = append(buf, mask)
	for i := range columns {
		if mask&(1<<i) == 0 {
			continue
		}
		for rest := bitmap; rest != 0; rest &= rest - 1 {
			buf = binary.AppendUvarint(buf, packed[bits.TrailingZeros64(rest)][i])
		}
	}
	return buf
}

// decodeHour is the inverse of encode. It returns errHour for anything that
// encode does not write.
func decodeHour(buf []byte) (h hour, err error) {
	if len(buf) < hourPrefix || buf[0] != hourFormat {
		return hour{}, fmt.Errorf("%w: format", errHour)
	}
	bitmap, mask := binary.LittleEndian.Uint64(buf[1:]), buf[hourPrefix-1]
	if bitmap == 0 || bitmap>>minutesPerHour != 0 || mask>>columns != 0 {
		return hour{}, fmt.Errorf("%w: bitmap %x, mask %x", errHour, bitmap, mask)
	}
	rest := buf[hourPrefix:]
	for i := range columns {
		if mask&(1<<i) == 0 {
			continue
		}
		if rest, err = h.decodeColumn(i, bitmap, rest); err != nil {
			return hour{}, err
		}
	}
	if len(rest) != 0 {
		return hour{}, fmt.Errorf("%w: %d bytes too many", errHour, len(rest))
	}
	return h, h.complete(bitmap)
}

// decodeColumn reads a column and returns what follows it.
func (h *hour) decodeColumn(column int, bitmap uint64, buf []byte) (rest []byte, err error) {
	var seen uint64 // bits of all values
	for ; bitmap != 0; bitmap &= bitmap - 1 {
		v, n := binary.Uvarint(buf)
		if n <= 0 || n != (bits.Len64(v|1)+6)/7 {
			return nil, fmt.Errorf("%w: varint", errHour)
		}
		h[bits.TrailingZeros64(bitmap)][column] = v
		seen |= v
		buf = buf[n:]
	}
	if seen == 0 {
		return nil, fmt.Errorf("%w: column %d holds zeros", errHour, column)
	}
	return buf, nil
}

// complete computes what the encoding left out and checks the minutes.
func (h *hour) complete(bitmap uint64) error {
	for ; bitmap != 0; bitmap &= bitmap - 1 {
		c := &h[bits.TrailingZeros64(bitmap)]
		c[admitted] = unzigzag(c[admitted]) + (c[offered] - c[dropped])
		if *c == (counts{}) {
			return fmt.Errorf("%w: idle minute", errHour)
		}
		for _, v := range c {
			if v > maxCount {
				return fmt.Errorf("%w: count %d", errHour, v)
			}
		}
	}
	return nil
}

// zigzag maps 0, -1, 1, -2 … modulo 2^64 to 0, 1, 2, 3 …
func zigzag(v uint64) uint64 { return v<<1 ^ uint64(int64(v)>>63) }

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }
