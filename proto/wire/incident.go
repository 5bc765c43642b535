package wire

import (
	"fmt"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

// ReaderVersion is that of the configurations this version can read. A writer
// raises it with what older readers would misunderstand by ignoring it.
const ReaderVersion = 1

// addIncident says in m what holds beside the revision: it is whole in each
// message, since it is little.
func addIncident(m *grlv1.Configuration, c *limiter.Configuration) {
	m.Serial, m.AllDisabled, m.DisabledServices = c.Serial, c.AllDisabled, c.Disabled
	for i := range c.Caps {
		m.Caps = append(m.Caps, FromCap(&c.Caps[i]))
	}
}

// FromCap returns the message for a cap, with the time it has left now.
func FromCap(c *limiter.Cap) *grlv1.Cap {
	m := &grlv1.Cap{
		Id:          c.ID,
		Service:     c.Service,
		Match:       fromMatch(c.Match),
		Author:      c.Author,
		Reason:      c.Reason,
		RemainingMs: time.Until(c.Ends).Milliseconds(),
	}
	if c.Block {
		m.Gate = &grlv1.Cap_Block{Block: true}
	} else {
		m.Gate = &grlv1.Cap_Limit{Limit: &grlv1.Limit{Rps: c.LimitRPS}}
	}
	return m
}

// maxRemaining bounds the time that a cap says it has left, either way: a bit
// more than the longest cap.
const maxRemaining = 25 * time.Hour

// takeIncident takes in what m says beside the revision.
func takeIncident(c *limiter.Configuration, m *grlv1.Configuration) error {
	c.Serial, c.AllDisabled, c.Disabled = m.GetSerial(), m.GetAllDisabled(), m.GetDisabledServices()
	now := time.Now()
	for _, cap := range m.GetCaps() {
		left := cap.GetRemainingMs()
		if left > maxRemaining.Milliseconds() {
			return fmt.Errorf("cap %q: %d ms left, at most %v", cap.GetId(), left, maxRemaining)
		}
		c.Caps = append(c.Caps, limiter.Cap{
			ID:       cap.GetId(),
			Service:  cap.GetService(),
			Match:    toMatch(cap.GetMatch()),
			LimitRPS: cap.GetLimit().GetRps(),
			Block:    cap.GetBlock(),
			Author:   cap.GetAuthor(),
			Reason:   cap.GetReason(),
			Ends:     now.Add(time.Duration(max(left, -maxRemaining.Milliseconds())) * time.Millisecond),
		})
	}
	return nil
}
