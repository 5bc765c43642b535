package wire

import (
	"fmt"
	"math"
	"slices"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// CheckDirective is CheckReport for a directive; only its column of admits may
// not be empty.
func CheckDirective(m *grlv1.Directive, names int) error {
	if m.GetEpoch() > MaxEpoch {
		return fmt.Errorf("epoch %d, at most %d", m.GetEpoch(), uint64(MaxEpoch))
	}
	n := len(m.GetCell())
	for _, column := range [...]int{
		len(m.GetOfferedMicroRps()), len(m.GetExcessMicroRps()), len(m.GetHosts()), len(m.GetShare()),
	} {
		if column != 0 && column != n {
			return errColumns
		}
	}
	if len(m.GetAdmit()) != n || len(m.GetHot()) > n {
		return errColumns
	}
	return checkNumbers(m.GetCell(), names)
}

// Verdicts returns what a directive that CheckDirective accepted says of its
// cells, row by row.
func Verdicts(m *grlv1.Directive) []law.Verdict {
	var hot map[uint32]bool
	if len(m.GetHot()) > 0 {
		hot = make(map[uint32]bool, len(m.GetHot()))
		for _, number := range m.GetHot() {
			hot[number] = true
		}
	}
	out := make([]law.Verdict, len(m.GetCell()))
	for row, number := range m.GetCell() {
		out[row] = law.Verdict{
			Admit:   float64(m.GetAdmit()[row]),
			Offered: law.MicroRPS(At(m.GetOfferedMicroRps(), row)).RPS(),
			Hosts:   float64(At(m.GetHosts(), row)),
			Excess:  law.MicroRPS(At(m.GetExcessMicroRps(), row)).RPS(),
			Hot:     hot[number],
		}
	}
	return out
}

// AppendVerdict adds a row to a directive; share is the receiving child's share
// of the offered rate, in [0, 1]. See SplitDirective for one with many rows.
func AppendVerdict(m *grlv1.Directive, number uint32, v law.Verdict, share float64) {
	row := len(m.Cell)
	m.Cell = append(m.Cell, number)
	m.Admit = append(m.Admit, float32(v.Admit))
	m.OfferedMicroRps = appendAt(m.OfferedMicroRps, row, uint64(law.Micro(v.Offered)))
	m.ExcessMicroRps = appendAt(m.ExcessMicroRps, row, uint64(law.Micro(v.Excess)))
	m.Hosts = appendAt(m.Hosts, row, uint32(max(0, min(v.Hosts, math.MaxUint32))))
	m.Share = appendAt(m.Share, row, float32(share))
	if v.Hot {
		m.Hot = append(m.Hot, number)
	}
}

// SplitDirective cuts a directive into messages of at most MaxCells cells. They
// have the same stamp; each names the cells that it is the first to carry. The
// numbers that m names must be the highest ones in it, in order, as Numbers
// gives them out.
func SplitDirective(m *grlv1.Directive) []*grlv1.Directive {
	if len(m.Cell) <= MaxCells {
		return []*grlv1.Directive{m}
	}
	named := slices.Max(m.Cell) + 1 - uint32(len(m.Names)) // cells named before
	names := m.Names
	var out []*grlv1.Directive
	for from := 0; from < len(m.Cell); from += MaxCells {
		to := min(from+MaxCells, len(m.Cell))
		fresh := 0
		for _, number := range m.Cell[from:to] {
			if number >= named {
				fresh++
			}
		}
		out = append(out, &grlv1.Directive{
			Decider:         m.Decider,
			Epoch:           m.Epoch,
			Sequence:        m.Sequence,
			Step:            m.Step,
			ReportSequence:  m.ReportSequence,
			CountedSequence: m.CountedSequence,
			Names:           names[:fresh:fresh],
			Cell:            cut(m.Cell, from, to),
			Admit:           cut(m.Admit, from, to),
			OfferedMicroRps: cut(m.OfferedMicroRps, from, to),
			ExcessMicroRps:  cut(m.ExcessMicroRps, from, to),
			Hosts:           cut(m.Hosts, from, to),
			Share:           cut(m.Share, from, to),
			Hot:             among(m.Hot, m.Cell[from:to]),
		})
		names = names[fresh:]
	}
	return out
}

func cut[T any](column []T, from, to int) []T {
	if len(column) == 0 {
		return nil
	}
	return column[from:to:to]
}

// among returns the numbers that are among cells.
func among(numbers, cells []uint32) []uint32 {
	if len(numbers) == 0 {
		return nil
	}
	here := make(map[uint32]bool, len(cells))
	for _, number := range cells {
		here[number] = true
	}
	var out []uint32
	for _, number := range numbers {
		if here[number] {
			out = append(out, number)
		}
	}
	return out
}
