package fleet

import (
	"testing"
	"time"
)

func TestPurse(t *testing.T) {
	var p purse
	for range 20 * 4 {
		p.fill(100, 50*time.Millisecond)
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
	for range 60 {
		p.fill(10, time.Second)
	}
	if missing := p.spend(1000); missing != 900 {
		t.Errorf("after a minute 1000 tokens lacked %d, want 900: ten seconds are kept", missing)
	}
}
