package etcd

import (
	"testing"
	"testing/synctest"
	"time"
)

func isOver(t *term) bool {
	select {
	case <-t.over():
		return true
	default:
		return false
	}
}

func TestTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		in := func(d time.Duration) time.Time { return start.Add(d) }
		term := newTerm(in(2 * time.Second))
		lost := term.over()
		time.Sleep(time.Second)
		term.extend(in(3 * time.Second))
		term.extend(in(2500 * time.Millisecond)) // an answer that was late: no shorter
		time.Sleep(1999 * time.Millisecond)
		if isOver(term) {
			t.Error("over after 2.999s, want 3s")
		}
		<-lost // by the timer alone
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("lost after %v, want 3s", got)
		}
		term.extend(in(time.Hour))
		if !isOver(term) {
			t.Error("extended after it was over")
		}
		term.end() // again does nothing
	})
}

// After a pause of the process no timer has run yet: whoever asks ends the term.
func TestTermIsOverBeforeItsTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, ask := range map[string]func(*term){
			"over":   func(term *term) { term.over() },
			"extend": func(term *term) { term.extend(time.Now().Add(time.Hour)) },
		} {
			term := newTerm(time.Now().Add(time.Second))
			term.timer.Stop() // as if it came late
			time.Sleep(time.Second)
			ask(term)
			select {
			case <-term.lost:
			default:
				t.Errorf("%s: not over at its end", name)
			}
		}
	})
}
