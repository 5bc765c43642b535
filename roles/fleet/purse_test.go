package fleet

import (
	"testing"
	"time"
)

func TestPurse(t *testing.T) {
	var p purse
	for at := time.Duration(0); at <= 4*time.Second; at += 50 * time.Millisecond {
		p.fill(100, at)
	}
	if missing := p.spend(350); missing != 0 {
		t.Errorf("of 400 tokens 350 lacked %d", missing)
	}
	if missing := p.spend(100); missing != 50 {
		t.Errorf("of 50 tokens 100 lacked %d, want 50", missing)
	}
}

func TestPurseForgetsOldTokens(t *testing.T) {
	var p purse
	for at := time.Duration(0); at <= time.Minute; at += 333 * time.Millisecond {
		p.fill(10, at)
	}
	if missing := p.spend(1000); missing < 900 || missing > 910 {
		t.Errorf("after a minute 1000 tokens lacked %d, want 900 to 910: ten seconds are kept", missing)
	}
	p.fill(10, time.Hour+500*time.Millisecond)
	if missing := p.spend(1000); missing < 900 || missing > 910 {
		t.Errorf("after an hour's pause 1000 tokens lacked %d, want 900 to 910", missing)
	}
}
