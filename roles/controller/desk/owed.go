package desk

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
)

// mark stands for the name or the text of an item in a lane. That of "", an item
// that is absent, is zero. It is short, since a lane may have those of all
// buckets; two texts of one item that differ share it once in 2^64.
type mark [8]byte

func markOf(text string) (m mark) {
	if text == "" {
		return m
	}
	sum := sha256.Sum256([]byte(text))
	copy(m[:], sum[:])
	return m
}

// owed has, by the mark of an item of one service, the mark of a text of it.
type owed map[mark]mark

// of returns the mark of the text of an item.
func (o owed) of(item string) (text mark, ok bool) {
	text, ok = o[markOf(item)]
	return text, ok
}

// MarshalText returns the pairs of marks in their order, as base64.
func (o owed) MarshalText() ([]byte, error) {
	pairs := make([][]byte, 0, len(o))
	for item, text := range o {
		pairs = append(pairs, slices.Concat(item[:], text[:]))
	}
	slices.SortFunc(pairs, bytes.Compare)
	return base64.RawStdEncoding.AppendEncode(nil, slices.Concat(pairs...)), nil
}

// UnmarshalText is the inverse of MarshalText.
func (o *owed) UnmarshalText(text []byte) error {
	all, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil {
		return err
	}
	const pair = 2 * len(mark{})
	if len(all)%pair != 0 {
		return fmt.Errorf("%d bytes, want a multiple of %d", len(all), pair)
	}
	*o = make(owed, len(all)/pair)
	for p := range slices.Chunk(all, pair) {
		(*o)[mark(p[:pair/2])] = mark(p[pair/2:])
	}
	return nil
}
