package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"grl/roles/command/demo"
)

// TestMain fails if a goroutine outlives the demos that started it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seconds leaves four of the surge after settling.
const seconds = 21

func options(progress io.Writer) demo.Options {
	return demo.Options{
		Seconds: seconds, Surge: 6, Version: "test",
		Log: slog.New(slog.DiscardHandler), Progress: progress,
	}
}

// Two demos at a time, one of them ended by Ctrl-C: real time on a machine that
// runs other tests, so with much slack. Without a limit three times as much would
// be admitted.
func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var both sync.WaitGroup
	both.Go(func() { testWhole(t) })
	both.Go(func() { testStopped(t) })
	both.Wait()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func testWhole(t *testing.T) {
	var progress bytes.Buffer
	r, err := demo.Run(t.Context(), options(&progress))
	if err != nil {
		t.Error(err)
		return
	}
	if r.AdmittedMeanRPS == nil || math.Abs(*r.AdmittedMeanRPS/r.LimitRPS-1) > 0.25 {
		t.Errorf("result %s, want what is admitted within 25 %% of the limit", asJSON(r))
	}
	if r.OfferedPeakRPS < 2*r.LimitRPS {
		t.Errorf("at most %v rps offered, want well above the limit of %v", r.OfferedPeakRPS, r.LimitRPS)
	}
	if r.UpstreamErrors > 0 || r.ShadowDrops == 0 || r.Decisions == 0 || r.StoppedEarly {
		t.Errorf("result %s, want no errors, but shadow drops and decisions, to the end", asJSON(r))
	}
	if got := strings.Count(progress.String(), "\n"); got != 1+seconds || strings.Contains(progress.String(), "\x1b") {
		t.Errorf("%d lines of progress, want the dashboard's and one a second, plain:\n%s", got, progress.String())
	}
}

func asJSON(r *demo.Result) []byte {
	text, _ := json.Marshal(r) // numbers always encode
	return text
}

func testStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := demo.Run(ctx, options(&untilLine{left: 3, then: cancel}))
	if err != nil {
		t.Error(err)
		return
	}
	if !r.StoppedEarly || r.AdmittedMeanRPS != nil || r.Decisions == 0 || r.UpstreamErrors > 0 {
		t.Errorf("result %s, want what happened until it was stopped", asJSON(r))
	}
}

// untilLine calls then at a line.
type untilLine struct {
	left int
	then func()
}

func (u *untilLine) Write(p []byte) (int, error) {
	if u.left--; u.left == 0 {
		u.then()
	}
	return len(p), nil
}

func TestDemoStoppedBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := demo.Run(ctx, options(&untilLine{left: 1, then: cancel})) // while the sidecars connect
	if err != nil {
		t.Fatal(err)
	}
	if !r.StoppedEarly || r.Decisions > 0 {
		t.Errorf("result %s, want nothing decided", asJSON(r))
	}
}

func TestDemoThatCannotStart(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent")
	r, err := demo.Run(t.Context(), options(io.Discard))
	if err == nil || !strings.HasPrefix(err.Error(), "start demo: ") || r != nil {
		t.Errorf("Run = %v, %v; want an error of the start", r, err)
	}
}
