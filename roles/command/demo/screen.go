package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/command/terminal"
)

const (
	viewTimeout = 500 * time.Millisecond // for the controller to tell its ratios
	barWidth    = 30
)

// screen shows a demo while it runs.
type screen struct {
	out     io.Writer
	inPlace bool // a terminal: the table is drawn over the last one
	drawn   int  // lines of the last table
	second  int  // that was drawn last
	plan    plan
	tally   *tally
	view    grlv1connect.ViewServiceClient
	cells   []*grlv1.BucketView // as the controller told last
}

func newScreen(out io.Writer, p *plane, plan plan, t *tally) *screen {
	return &screen{
		out:     out,
		inPlace: terminal.Is(out),
		plan:    plan,
		tally:   t,
		view:    grlv1connect.NewViewServiceClient(p.dial, p.dashboard),
	}
}

// draw shows the second that has just ended.
func (s *screen) draw(ctx context.Context, elapsed time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	answer, err := s.view.ListBuckets(ctx, &grlv1.ListBucketsRequest{Service: service})
	if err == nil { // else the last ones stay for a second more
		s.cells = answer.GetBuckets()
	}
	elapsed = min(elapsed, s.plan.total)
	if seconds(elapsed) == s.second {
		return // the load is over, and answers are late
	}
	s.second = seconds(elapsed)
	byZone := s.tally.second(s.second - 1)
	text := s.line(elapsed, byZone)
	if s.inPlace {
		text = s.table(elapsed, byZone)
		if s.drawn > 0 {
			text = fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn) + text
		}
		s.drawn = strings.Count(text, "\n")
	}
	_, _ = io.WriteString(s.out, text) // a reader that has gone misses nothing else
}
