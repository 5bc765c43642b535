package simulate

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress waits for two seconds, then draws at most ten times a second,
// and leaves nothing on the line.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out)
		time.Sleep(progressAfter)
		p.Second("step", "grl", 20*time.Second)
		p.Clear()
		if out.Len() > 0 {
			t.Errorf("wrote %q in the first two seconds", &out)
		}
		time.Sleep(time.Millisecond)
		p.Second("step", "grl", 21*time.Second)
		p.Second("step", "grl", 22*time.Second)
		time.Sleep(progressEach + time.Millisecond)
		p.Second("ramp", "minimal", 1*time.Second)
		p.Clear()
		p.Clear()
		if want := clearLine + "step, grl: 21 s" + clearLine + "ramp, minimal: 1 s" + clearLine; out.String() != want {
			t.Errorf("wrote %q, want %q", &out, want)
		}
	})
}

// TestProgressIsForTerminals writes nothing into files and pipes.
func TestProgressIsForTerminals(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(file)
		time.Sleep(time.Minute)
		p.Second("step", "grl", time.Second)
		p.Clear()
	})
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("wrote %q, %v, want nothing", text, err)
	}
}
