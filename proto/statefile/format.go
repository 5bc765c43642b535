package statefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// A file is the magic, the number of the format, records, and the checksum of
// all before it. A record is its kind in a byte, its length as a uvarint and
// its content. What was decided is said as on a stream, in directives that name
// their cells.
const (
	magic  = "grlstate"
	format = 2
	// untimed is the format before caps: without times of configurations.
	untimed = 1

	recordNode          = 1 // text: who wrote it
	recordConfiguration = 2 // a grlv1.Configuration
	recordDirective     = 3 // milliseconds since 1970 as a varint, a grlv1.Directive
	recordTime          = 4 // milliseconds since 1970 as a varint: from then on the caps of the next record have the time left that it says
)

var table = crc32.MakeTable(crc32.Castagnoli)

// encode returns the content of the file.
func (f *File) encode(s State) ([]byte, error) {
	out := binary.BigEndian.AppendUint32([]byte(magic), format)
	out = appendRecord(out, recordNode, []byte(f.node))
	if s.Configuration != nil {
		content, err := f.encodeConfiguration(s)
		if err != nil {
			return nil, err
		}
		out = appendRecord(out, recordTime, binary.AppendVarint(nil, f.encodedAt.UnixMilli()))
		out = appendRecord(out, recordConfiguration, content)
	}
	for i := range s.Deciders {
		d := &s.Deciders[i]
		for _, m := range wire.SplitDirective(fromDecider(d)) {
			content, err := proto.MarshalOptions{}.MarshalAppend(binary.AppendVarint(nil, d.Heard.UnixMilli()), m)
			if err != nil {
				return nil, err
			}
			out = appendRecord(out, recordDirective, content)
		}
	}
	if len(out) > maxBytes {
		return nil, fmt.Errorf("%d bytes, at most %d", len(out), maxBytes)
	}
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, table)), nil
}

func appendRecord(out []byte, kind byte, content []byte) []byte {
	out = binary.AppendUvarint(append(out, kind), uint64(len(content)))
	return append(out, content...)
}

// encodeConfiguration returns the message, of which only the zones change
// often.
func (f *File) encodeConfiguration(s State) ([]byte, error) {
	if f.configuration != s.Configuration {
		now := time.Now()
		encoded, err := proto.Marshal(wire.FromConfiguration(s.Configuration))
		if err != nil {
			return nil, err
		}
		f.configuration, f.encoded, f.encodedAt = s.Configuration, encoded, now
	}
	zones, err := proto.Marshal(&grlv1.Configuration{Zones: s.Zones})
	if err != nil {
		return nil, err
	}
	// One message after another is both merged.
	return append(f.encoded[:len(f.encoded):len(f.encoded)], zones...), nil
}

func fromDecider(d *Decider) *grlv1.Directive {
	m := &grlv1.Directive{Decider: d.Name, Epoch: d.Stamp.Epoch, Sequence: d.Stamp.Sequence, Step: d.Stamp.Step}
	for i := range d.Rows {
		r := &d.Rows[i]
		m.Names = append(m.Names, wire.FromCellID(r.Cell))
		wire.AppendVerdict(m, uint32(i), r.Verdict, r.Share)
	}
	return m
}

// decode returns what encode wrote.
func (f *File) decode(data []byte) (State, error) {
	if len(data) > maxBytes {
		return State{}, fmt.Errorf("more than %d bytes", maxBytes)
	}
	if len(data) < len(magic)+8 || string(data[:len(magic)]) != magic {
		return State{}, errors.New("not a state file, or cut short")
	}
	// The format first: another one may have another checksum.
	if written := binary.BigEndian.Uint32(data[len(magic):]); written != format && written != untimed {
		return State{}, fmt.Errorf("format %d; this version reads formats %d and %d", written, untimed, format)
	}
	end := len(data) - 4
	if crc32.Checksum(data[:end], table) != binary.BigEndian.Uint32(data[end:]) {
		return State{}, errors.New("damaged: its checksum does not match")
	}
	d := decoder{node: f.node, ids: make(map[string][]limiter.CellID), index: make(map[string]int)}
	for records := data[len(magic)+4 : end]; len(records) > 0; {
		kind := records[0]
		length, n := binary.Uvarint(records[1:])
		if n <= 0 || length > uint64(len(records)-1-n) {
			return State{}, errors.New("damaged: a record longer than the file")
		}
		from := 1 + n
		if err := d.record(kind, records[from:from+int(length)]); err != nil {
			return State{}, err
		}
		records = records[from+int(length):]
	}
	if !d.known {
		return State{}, errors.New("damaged: it does not say whose it is")
	}
	return d.state, nil
}

// decoder takes in the records of a file, in their order.
type decoder struct {
	node  string
	known bool // the file is this node's

	written time.Time // of recordTime; zero: none yet
	state   State
	index   map[string]int              // decider → its place in state
	ids     map[string][]limiter.CellID // decider → cells named
}

func (d *decoder) record(kind byte, content []byte) error {
	switch {
	case kind == recordNode:
		if string(content) != d.node {
			return fmt.Errorf("it is of %q, not of %q", content, d.node)
		}
		d.known = true
		return nil
	case kind == recordTime:
		written, n := binary.Varint(content)
		if n <= 0 {
			return errors.New("damaged: a time that is none")
		}
		d.written = time.UnixMilli(written)
		return nil
	case kind == recordConfiguration:
		return d.configuration(content)
	case kind == recordDirective:
		return d.directive(content)
	default:
		return fmt.Errorf("damaged: a record of unknown kind %d", kind)
	}
}

func (d *decoder) configuration(content []byte) error {
	m := &grlv1.Configuration{}
	if err := proto.Unmarshal(content, m); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := d.age(m.GetCaps()); err != nil {
		return err
	}
	m.Whole = true
	c, err := wire.ToConfiguration(&limiter.Configuration{}, m)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	d.state.Configuration, d.state.Zones = c, m.GetZones()
	return nil
}

// longestCap bounds the time that a cap has left, whatever the clock did.
const longestCap = 24 * time.Hour

// age takes off the caps the time since they were written, by wall time; a
// clock that has gone back since gives them no more than they had.
func (d *decoder) age(caps []*grlv1.Cap) error {
	if len(caps) > 0 && d.written.IsZero() {
		return errors.New("damaged: caps without a time")
	}
	passed := min(max(0, time.Now().Round(0).Sub(d.written)), 2*longestCap) // Round strips the monotonic reading
	for _, c := range caps {
		c.RemainingMs = min(max(c.GetRemainingMs(), -longestCap.Milliseconds()), longestCap.Milliseconds()) - passed.Milliseconds()
	}
	return nil
}

func (d *decoder) directive(content []byte) error {
	heard, n := binary.Varint(content)
	if n <= 0 {
		return errors.New("damaged: a directive without a time")
	}
	m := &grlv1.Directive{}
	if err := proto.Unmarshal(content[n:], m); err != nil {
		return fmt.Errorf("directive: %w", err)
	}
	name := m.GetDecider()
	ids, err := wire.Named(d.ids[name], m.GetNames())
	if err == nil {
		err = wire.CheckDirective(m, len(ids))
	}
	if err != nil {
		return fmt.Errorf("directive of %q: %w", name, err)
	}
	d.ids[name] = ids
	i, ok := d.index[name]
	if !ok {
		i = len(d.state.Deciders)
		d.index[name] = i
		d.state.Deciders = append(d.state.Deciders, Decider{Name: name, Stamp: wire.Stamp(m), Heard: time.UnixMilli(heard)})
	}
	at := &d.state.Deciders[i]
	for row, v := range wire.Verdicts(m) {
		at.Rows = append(at.Rows, Row{Cell: ids[m.GetCell()[row]], Verdict: v, Share: float64(wire.At(m.GetShare(), row))})
	}
	return nil
}
