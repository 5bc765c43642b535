package fleet

import "time"

// tokensKept is for how many seconds unused tokens are kept.
const tokensKept = 10

// purse has the tokens that a host was given in the last seconds and has not
// used. The zero value is one that was empty when the run began.
type purse struct {
	kept   [tokensKept]float64 // by second, in a ring
	filled time.Duration       // until here
}

// fill puts in what came at a rate, in tokens per second, until now. What was
// put in longer ago than tokensKept is lost, and with the second that begins
// what came in its slot before.
func (p *purse) fill(rate float64, now time.Duration) {
	if oldest := now - tokensKept*time.Second; p.filled < oldest {
		*p = purse{filled: oldest}
	}
	for p.filled < now {
		second := p.filled / time.Second
		end := min(now, (second+1)*time.Second)
		at := &p.kept[second%tokensKept]
		if p.filled == second*time.Second {
			*at = 0 // of ten seconds ago
		}
		*at += rate * (end - p.filled).Seconds()
		p.filled = end
	}
}

// spend takes up to n tokens, the oldest first, and returns how many were
// missing.
func (p *purse) spend(n int) int {
	sum := 0.0
	for _, k := range p.kept {
		sum += k
	}
	spent := min(n, int(sum))
	left := float64(spent)
	oldest := int(p.filled/time.Second) + 1
	for i := range tokensKept {
		at := &p.kept[(oldest+i)%tokensKept]
		take := min(left, *at)
		*at -= take
		left -= take
	}
	return n - spent
}
