package overview

import (
	"cmp"
	"context"
	"slices"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// ending is from when on a cap is about to end.
const ending = 10 * time.Minute

// caps are those that run.
type caps struct {
	Note    string // "2 caps"
	Rows    []capRow
	Problem string // why they cannot be read; empty: they can

	ending []*grlv1.CapView // soonest first
}

// capRow is one of them, ready to print.
type capRow struct {
	What, Why string
	Gate      string // "400 rps"; "Blocked"
	Block     bool
	Drops     string // share of what it is tried on
	Dropping  bool
	Left      string
	Ends      format.Stamp
	Ramps     bool // it has ended
}

// caps reads the caps.
func (s site) caps(ctx context.Context, now time.Time) caps {
	if s.Services.Incident == nil || !page.May(ctx, grlv1connect.IncidentServiceListCapsProcedure) {
		return caps{}
	}
	list, err := s.Services.Incident.ListCaps(ctx, &grlv1.ListCapsRequest{})
	if err != nil {
		return caps{Problem: "The caps cannot be read now."}
	}
	all := list.GetCaps()
	v := caps{Note: format.Plural(len(all), "cap")}
	for i, c := range all {
		if i < shown {
			v.Rows = append(v.Rows, newCapRow(c, now))
		}
		if left := time.UnixMilli(c.GetEndsAtMs()).Sub(now); left > 0 && left < ending {
			v.ending = append(v.ending, c)
		}
	}
	slices.SortStableFunc(v.ending, func(a, b *grlv1.CapView) int { return cmp.Compare(a.GetEndsAtMs(), b.GetEndsAtMs()) })
	return v
}

func newCapRow(c *grlv1.CapView, now time.Time) capRow {
	ends := time.UnixMilli(c.GetEndsAtMs())
	r := capRow{
		What: capWords(c.GetCap()), Why: format.Printable(c.GetCap().GetReason()), Block: c.GetCap().GetBlock(), Drops: "0",
		Left: format.Left(ends.Sub(now)), Ends: format.NewStamp(ends, now), Ramps: !ends.After(now),
	}
	r.Gate = format.RPS(c.GetCap().GetLimit().GetRps()) + " rps"
	if r.Block {
		r.Gate = "Blocked"
	}
	if c.GetOfferedRps() > 0 {
		share := c.GetDroppedRps() / c.GetOfferedRps()
		r.Drops, r.Dropping = format.Share(share), share > 0
	}
	return r
}

// capWords says what a cap selects: "promo-batch → payments".
func capWords(c *grlv1.Cap) string {
	what := cmp.Or(c.GetMatch().GetCaller(), "*") + " → " + c.GetService()
	if p := c.GetMatch().GetProcedure(); p != "" && p != "*" {
		what += " " + p
	}
	return format.Printable(what)
}
