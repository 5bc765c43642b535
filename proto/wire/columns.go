package wire

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

const (
	// MaxCells is the most cells in one report or directive; a sender with more
	// sends several.
	MaxCells = 5000
	// MaxNew is the most cells that one report names, so that it stays below
	// MaxReport whatever the names.
	MaxNew = 700
	// MaxNames is the most cells that one stream may name. A receiver closes a
	// stream that goes beyond it, and the next one numbers anew.
	MaxNames = 1 << 20
	// MaxReport is the most bytes of a message up.
	MaxReport = 1 << 20
	// MaxDown is the most bytes of a message down: a whole configuration.
	MaxDown = 16 << 20
	// MaxEpoch is the highest epoch that is believed of anybody. A decider counts
	// its starts, and goes at most a million above them for what it hears, so none
	// comes near; without a bound one forged directive would silence all deciders.
	MaxEpoch = 1 << 52

	// EpochsAhead is how far above what a node knows it believes an epoch that a
	// child says it has heard.
	EpochsAhead = 1 << 20

	// MaxReason is the most bytes of why a node refused a configuration.
	MaxReason = 1 << 10

	maxName  = 256     // bytes of a name of a bucket, instance, caller or node, each
	maxHosts = 1 << 20 // below one child; thousands of such still add up

	firstRows = 64 // of a column, for a start
)

// Equal reports whether two services say the same. It is quick where one is a
// copy of the other that shares its buckets.
func Equal(a, b *limiter.Service) bool {
	if n := len(a.Buckets); n > 0 && n == len(b.Buckets) && &a.Buckets[0] == &b.Buckets[0] {
		x, y := *a, *b
		x.Buckets, y.Buckets = nil, nil
		return reflect.DeepEqual(x, y)
	}
	return reflect.DeepEqual(a, b)
}

// Heard returns what a hello says of the highest epochs heard, by decider.
func Heard(epochs map[string]uint64) []*grlv1.Heard {
	out := make([]*grlv1.Heard, 0, len(epochs))
	for decider, epoch := range epochs {
		out = append(out, &grlv1.Heard{Decider: decider, Epoch: epoch})
	}
	return out
}

// HeardEpoch returns the highest epoch of a decider that the sender of a hello
// has heard, 0 if what it says cannot be.
func HeardEpoch(m *grlv1.Hello, decider string) uint64 {
	for _, h := range m.GetHeard() {
		if h.GetDecider() == decider && h.GetEpoch() < MaxEpoch {
			return h.GetEpoch()
		}
	}
	return 0
}

// CheckHello returns an error if a hello says a name that is longer than any:
// parents pass it on, and keep it for as long as the stream lives.
func CheckHello(m *grlv1.Hello) error {
	names := []string{m.GetNode(), m.GetZone(), m.GetRegion(), m.GetVersion()}
	for _, list := range [][]string{names, m.GetServices(), m.GetCallers()} {
		for _, name := range list {
			if len(name) > maxName {
				return fmt.Errorf("hello with a name of %d bytes, at most %d", len(name), maxName)
			}
		}
	}
	return nil
}

// Reason returns why a configuration was refused as a report can carry it.
func Reason(s string) string {
	if len(s) > MaxReason {
		s = s[:MaxReason]
	}
	return strings.ToValidUTF8(s, "")
}

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

// FromCellID returns the message for a cell's name.
func FromCellID(id limiter.CellID) *grlv1.CellName {
	return &grlv1.CellName{Bucket: Text(id.Bucket), Instance: Text(id.Instance), Caller: Text(id.Caller), Class: Text(id.Class)}
}

// Text returns a name as a message can carry it. A caller may call itself
// anything; a message with bytes that are no UTF-8 could not be sent at all.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// ToCellID returns the name of a cell. It returns an error for one that is too
// long.
func ToCellID(m *grlv1.CellName) (limiter.CellID, error) {
	id := limiter.CellID{Bucket: m.GetBucket(), Instance: m.GetInstance(), Caller: m.GetCaller(), Class: m.GetClass()}
	if len(id.Bucket) > 2*maxName+1 || len(id.Instance) > maxName || len(id.Caller) > maxName || len(id.Class) > 2*maxName {
		return id, fmt.Errorf("cell name of %d bytes, at most %d a part", len(id.Bucket)+len(id.Instance)+len(id.Caller)+len(id.Class), maxName)
	}
	return id, nil
}

// Named appends the cells that a message names to those of its stream. It
// returns an error, and ids as they were, if one is too long or comes twice, or
// they are too many.
func Named(ids []limiter.CellID, names []*grlv1.CellName) ([]limiter.CellID, error) {
	if len(names) > MaxCells || len(ids)+len(names) > MaxNames {
		return ids, fmt.Errorf("%d cells named after %d, at most %d in a message and %d on a stream", len(names), len(ids), MaxCells, MaxNames)
	}
	all := ids
	for _, name := range names {
		id, err := ToCellID(name)
		if err != nil {
			return ids, err
		}
		all = append(all, id)
	}
	if repeated(all[len(ids):]) {
		return ids, errors.New("a cell named twice in a message")
	}
	return all, nil
}

// repeated reports whether a cell occurs twice.
func repeated(ids []limiter.CellID) bool {
	if len(ids) < 2 {
		return false
	}
	seen := make(map[limiter.CellID]bool, len(ids))
	for _, id := range ids {
		seen[id] = true
	}
	return len(seen) < len(ids)
}

var errColumns = errors.New("columns of unequal length")

// CheckReport returns an error if the columns of a report do not fit each
// other, or have a cell twice, or one that names, the count of names so far with
// those of this report, does not cover; or if one of rates only has counts.
func CheckReport(m *grlv1.Report, names int) error {
	n := len(m.GetCell())
	if m.GetRatesOnly() && len(m.GetOffered())+len(m.GetDropped())+len(m.GetShadowDropped())+len(m.GetLate()) > 0 {
		return errors.New("counts in a report of rates only")
	}
	for _, column := range [...]int{
		len(m.GetOfferedMicroRps()), len(m.GetExcessMicroRps()), len(m.GetHosts()),
		len(m.GetOffered()), len(m.GetDropped()), len(m.GetShadowDropped()), len(m.GetLate()),
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
	for _, c := range cells {
		if int64(c) >= int64(names) {
			return fmt.Errorf("cell %d of %d named ones", c, names)
		}
	}
	if twice(cells) {
		return errors.New("a cell twice in a message")
	}
	return nil
}

// twice reports whether a number occurs twice.
func twice(cells []uint32) bool {
	for i := 1; i < len(cells); i++ {
		if cells[i-1] >= cells[i] { // seldom: senders go through their cells in order
			return len(slices.Compact(slices.Sorted(slices.Values(cells)))) < len(cells)
		}
	}
	return false
}

// Row returns the rate and the counts of row i of a report that CheckReport
// accepted.
func Row(m *grlv1.Report, i int) (law.Rate, law.Counts) {
	rate := law.Rate{
		Offered: min(law.MicroRPS(At(m.GetOfferedMicroRps(), i)), law.MaxRPS*1e6),
		Excess:  min(law.MicroRPS(At(m.GetExcessMicroRps(), i)), law.MaxRPS*1e6),
		Hosts:   min(At(m.GetHosts(), i), maxHosts),
	}
	return rate, law.Counts{
		Offered:       At(m.GetOffered(), i),
		Dropped:       At(m.GetDropped(), i),
		ShadowDropped: At(m.GetShadowDropped(), i),
		Late:          At(m.GetLate(), i),
	}
}

// At returns row i of a column that may be empty, and then is 0 throughout.
func At[T any](column []T, i int) T {
	if i < len(column) {
		return column[i]
	}
	var zero T
	return zero
}

// Full reports whether a report has no room for another cell.
func Full(m *grlv1.Report) bool { return len(m.Cell) >= MaxCells || len(m.Names) >= MaxNew }

// AppendRow adds a row to a report that is not Full. A column stays empty until
// there is something other than 0 for it.
func AppendRow(m *grlv1.Report, number uint32, r law.Rate, n law.Counts) {
	row := len(m.Cell)
	m.Cell = append(m.Cell, number)
	m.OfferedMicroRps = appendAt(m.OfferedMicroRps, row, uint64(r.Offered))
	m.ExcessMicroRps = appendAt(m.ExcessMicroRps, row, uint64(r.Excess))
	m.Hosts = appendAt(m.Hosts, row, r.Hosts)
	m.Offered = appendAt(m.Offered, row, n.Offered)
	m.Dropped = appendAt(m.Dropped, row, n.Dropped)
	m.ShadowDropped = appendAt(m.ShadowDropped, row, n.ShadowDropped)
	m.Late = appendAt(m.Late, row, n.Late)
}

func appendAt[T uint32 | uint64 | float32](column []T, row int, v T) []T {
	if len(column) == 0 {
		if v == 0 {
			return nil
		}
		column = make([]T, row, max(row+1, firstRows))
	}
	return append(column, v)
}
