package caps

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// logged is a cap as the audit has it.
type logged struct {
	ID        string    `json:"id"`
	Service   string    `json:"service"`
	Caller    string    `json:"caller"`
	Procedure string    `json:"procedure"`
	RPS       float64   `json:"rps"`
	Block     bool      `json:"block"`
	Reason    string    `json:"reason"`
	PlacedAt  time.Time `json:"placed_at"`
	EndsAt    time.Time `json:"ends_at"`
}

func (c *logged) match() limiter.Match {
	return limiter.Match{Caller: limiter.Pattern(c.Caller), Procedure: limiter.Pattern(c.Procedure)}
}

// path is that of the form that places it again.
func (c *logged) path() string {
	path := page.CapPath(c.Service, c.Caller, c.Procedure)
	if c.RPS > 0 {
		path += "&rps=" + plain(c.RPS)
	}
	return path
}

// act is what was done to a cap.
type act struct {
	At     time.Time
	Action string
	Cap    logged
}

// mostLogged is how many of the newest entries of the audit are looked at: one
// that selects would read back to the first.
const mostLogged = 500

// log returns what was done to caps lately, the newest first.
func (s site) log(ctx context.Context) ([]act, error) {
	list, err := s.Services.Audit.ListAudit(ctx, &grlv1.ListAuditRequest{PageSize: mostLogged})
	if err != nil {
		return nil, err
	}
	var acts []act
	for _, e := range list.GetEntries() {
		text := e.GetAfter()
		switch e.GetAction() {
		case "cap.lift":
			text = e.GetBefore()
		case "cap.place", "cap.extend":
		default:
			continue
		}
		a := act{At: time.UnixMilli(e.GetAtMs()), Action: e.GetAction()}
		if json.Unmarshal([]byte(text), &a.Cap) == nil && a.Cap.ID != "" {
			acts = append(acts, a)
		}
	}
	return acts, nil
}

// mostReady is how many reasons are offered.
const mostReady = 3

// ready are the reasons that are offered: what is seen of the load, and those of
// the latest caps.
func (f *forecast) ready(acts []act) []string {
	var texts []string
	if f.OfferedRPS > 0 {
		text := format.RPS(f.OfferedRPS) + " rps offered"
		if f.Sizes.Usual > 0 {
			text += ", usual at this hour " + format.RPS(f.Sizes.Usual)
		}
		texts = append(texts, text)
	}
	for _, a := range acts {
		if len(texts) < mostReady && a.Action == "cap.place" && a.Cap.Reason != "" && !slices.Contains(texts, a.Cap.Reason) {
			texts = append(texts, a.Cap.Reason)
		}
	}
	return texts
}

// endedCap is a cap that is over.
type endedCap struct {
	What, Gate string
	Dropped    string
	Ended      format.Stamp
}

// Of the caps that ended, those of endedFor are listed, mostEnded at most.
const (
	endedFor  = 7 * 24 * time.Hour
	mostEnded = 8
	ramp      = 2 * time.Minute // after the end of a cap that was not lifted
)

// ended returns the caps that are over, the latest end first. acts are the
// newest first, so the first one of a cap says how it ended.
func (s site) ended(ctx context.Context, acts []act, now time.Time) []endedCap {
	var over []act // At: the end
	seen := make(map[string]bool)
	for _, a := range acts {
		if seen[a.Cap.ID] {
			continue
		}
		seen[a.Cap.ID] = true
		if a.Action != "cap.lift" {
			a.At = a.Cap.EndsAt
		}
		if !a.At.After(now) && now.Sub(a.At) < endedFor {
			over = append(over, a)
		}
	}
	slices.SortStableFunc(over, func(a, b act) int { return b.At.Compare(a.At) })
	var rows []endedCap
	for _, a := range over[:min(len(over), mostEnded)] {
		row := endedCap{
			What: arrow(a.Cap.Service, a.Cap.match()), Gate: "at " + format.RPS(a.Cap.RPS) + " rps",
			Dropped: s.dropped(ctx, a), Ended: format.NewStamp(a.At, now),
		}
		if a.Cap.Block {
			row.Gate = "blocked"
		}
		rows = append(rows, row)
	}
	return rows
}

// dropped says how many requests a cap dropped, by the history.
func (s site) dropped(ctx context.Context, a act) string {
	to := a.At
	if a.Action != "cap.lift" {
		to = to.Add(ramp)
	}
	const step = time.Minute
	series, err := s.Backend.Series(ctx, page.SeriesQuery{
		Bucket: a.Cap.Service + "/" + limiter.CapPrefix + a.Cap.ID,
		From:   a.Cap.PlacedAt.Truncate(step), To: to.Add(step), Step: step,
	})
	if err != nil {
		return "not known"
	}
	sum, known := 0.0, false
	for _, v := range series.Dropped {
		if !math.IsNaN(v) {
			sum, known = sum+v*step.Seconds(), true
		}
	}
	if !known {
		return "not known"
	}
	return sizeOf(sum)
}

// sizeOf prints a sum of requests.
func sizeOf(sum float64) string {
	if sum < 10_000 {
		return format.Count(int(math.Round(sum)))
	}
	return strings.TrimSpace(format.Size(sum))
}
