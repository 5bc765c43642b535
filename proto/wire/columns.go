package wire

import (
	"errors"
	"fmt"
	"reflect"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

const (
	// MaxCells is the most cells in one report or directive; a sender with more
	// sends several.
	MaxCells = 5000
	// MaxNames is the most cells that one stream may name. A stream that
	// reached it is closed, and the next one numbers anew.
	MaxNames = 1 << 20
	// MaxReport is the most bytes of a message up.
	MaxReport = 1 << 20
	// MaxDown is the most bytes of a message down: a whole configuration.
	MaxDown = 16 << 20

	maxName = 256 // bytes of a bucket's, instance's or caller's name, each
)

func equal(a, b *limiter.Service) bool { return reflect.DeepEqual(a, b) }

// Numbers numbers cells for the sender of one direction of a stream. Cells are
// the sender's own indices. The zero value has named none.
type Numbers struct {
	of   []uint32 // index → number + 1; 0: not named
	next uint32
}

// Number returns the number of a cell. If it is new, its name is appended to
// names, for the message that first carries it.
func (n *Numbers) Number(index int, id limiter.CellID, names *[]*grlv1.CellName) uint32 {
	if index >= len(n.of) {
		n.of = append(n.of, make([]uint32, index+1-len(n.of))...)
	}
	if n.of[index] == 0 {
		*names = append(*names, FromCellID(id))
		n.next++
		n.of[index] = n.next
	}
	return n.of[index] - 1
}

// Forget makes the index free for another cell, which gets another number.
func (n *Numbers) Forget(index int) {
	if index < len(n.of) {
		n.of[index] = 0
	}
}

// Full reports whether the stream has named as many cells as it may.
func (n *Numbers) Full() bool { return n.next >= MaxNames }

// FromCellID returns the message for a cell's name.
func FromCellID(id limiter.CellID) *grlv1.CellName {
	return &grlv1.CellName{Bucket: id.Bucket, Instance: id.Instance, Caller: id.Caller}
}

// ToCellID returns the name of a cell. It returns an error for one that is too
// long.
func ToCellID(m *grlv1.CellName) (limiter.CellID, error) {
	id := limiter.CellID{Bucket: m.GetBucket(), Instance: m.GetInstance(), Caller: m.GetCaller()}
	if len(id.Bucket) > 2*maxName+1 || len(id.Instance) > maxName || len(id.Caller) > maxName {
		return id, fmt.Errorf("cell name of %d bytes, at most %d a part", len(id.Bucket)+len(id.Instance)+len(id.Caller), maxName)
	}
	return id, nil
}

var errColumns = errors.New("columns of unequal length")

// CheckReport returns an error if the columns of a report do not fit each
// other, or name a cell that names, the count of names so far with those of
// this report, does not cover.
func CheckReport(m *grlv1.Report, names int) error {
	n := len(m.GetCell())
	for _, column := range []int{
		len(m.GetOfferedMicroRps()), len(m.GetHosts()),
		len(m.GetOffered()), len(m.GetDropped()), len(m.GetShadowDropped()), len(m.GetLate()),
	} {
		if column != 0 && column != n {
			return errColumns
		}
	}
	return checkNumbers(m.GetCell(), names)
}

// CheckDirective is CheckReport for a directive.
func CheckDirective(m *grlv1.Directive, names int) error {
	n := len(m.GetCell())
	for _, column := range []int{
		len(m.GetAdmit()), len(m.GetOfferedMicroRps()), len(m.GetHosts()), len(m.GetShare()),
	} {
		if column != 0 && column != n {
			return errColumns
		}
	}
	return checkNumbers(m.GetCell(), names)
}

func checkNumbers(cells []uint32, names int) error {
	if len(cells) > MaxCells {
		return fmt.Errorf("%d cells in a message, at most %d", len(cells), MaxCells)
	}
	if names > MaxNames {
		return fmt.Errorf("%d cells named on a stream, at most %d", names, MaxNames)
	}
	for _, c := range cells {
		if int64(c) >= int64(names) {
			return fmt.Errorf("cell %d of %d named ones", c, names)
		}
	}
	return nil
}

// Row returns the rate and the counts of row i of a report that CheckReport
// accepted.
func Row(m *grlv1.Report, i int) (law.Rate, law.Counts) {
	return law.Rate{
			Offered: min(law.MicroRPS(at(m.GetOfferedMicroRps(), i)), law.MaxRPS*1e6),
			Hosts:   at(m.GetHosts(), i),
		}, law.Counts{
			Offered:       at(m.GetOffered(), i),
			Dropped:       at(m.GetDropped(), i),
			ShadowDropped: at(m.GetShadowDropped(), i),
			Late:          at(m.GetLate(), i),
		}
}

func at[T any](column []T, i int) T {
	if i < len(column) {
		return column[i]
	}
	var zero T
	return zero
}

// AppendRow adds a row to a report. Call Trim when all are in.
func AppendRow(m *grlv1.Report, number uint32, r law.Rate, n law.Counts) {
	m.Cell = append(m.Cell, number)
	m.OfferedMicroRps = append(m.OfferedMicroRps, uint64(r.Offered))
	m.Hosts = append(m.Hosts, r.Hosts)
	m.Offered = append(m.Offered, n.Offered)
	m.Dropped = append(m.Dropped, n.Dropped)
	m.ShadowDropped = append(m.ShadowDropped, n.ShadowDropped)
	m.Late = append(m.Late, n.Late)
}

// Trim empties the columns of a report that hold nothing but zeros.
func Trim(m *grlv1.Report) {
	m.OfferedMicroRps = trim(m.OfferedMicroRps)
	m.Hosts = trim(m.Hosts)
	m.Offered = trim(m.Offered)
	m.Dropped = trim(m.Dropped)
	m.ShadowDropped = trim(m.ShadowDropped)
	m.Late = trim(m.Late)
}

func trim[T comparable](column []T) []T {
	var zero T
	for _, v := range column {
		if v != zero {
			return column
		}
	}
	return nil
}

// SplitDirective cuts a directive into messages of at most MaxCells cells. They
// have the same stamp; the first one has the names of all.
func SplitDirective(m *grlv1.Directive) []*grlv1.Directive {
	out := []*grlv1.Directive{m}
	for last := m; len(last.Cell) > MaxCells; {
		rest := &grlv1.Directive{
			Decider:         last.Decider,
			Epoch:           last.Epoch,
			Sequence:        last.Sequence,
			Step:            last.Step,
			ReportSequence:  last.ReportSequence,
			Cell:            cut(&last.Cell),
			Admit:           cut(&last.Admit),
			OfferedMicroRps: cut(&last.OfferedMicroRps),
			Hosts:           cut(&last.Hosts),
			Share:           cut(&last.Share),
			Hot:             last.Hot,
		}
		out = append(out, rest)
		last = rest
	}
	return out
}

// cut shortens a column to MaxCells and returns the rest.
func cut[T any](column *[]T) []T {
	if len(*column) <= MaxCells {
		return nil
	}
	rest := (*column)[MaxCells:]
	*column = (*column)[:MaxCells:MaxCells]
	return rest
}
