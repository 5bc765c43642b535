package demo

import (
	"errors"
	"io"
	"log/slog"
	"testing"
)

func TestDemoEndsWhenARoleFails(t *testing.T) {
	plan := newPlan(readExcerpt(t), MinSeconds, MinSurge)
	p, err := startPlane(t.Context(), plan.limits, slog.New(slog.DiscardHandler), "test")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	p.fail(broken)
	p.fail(errors.New("and what follows from it"))
	if _, err := p.play(t.Context(), plan, io.Discard); !errors.Is(err, broken) {
		t.Errorf("play = %v, want the first failure", err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
