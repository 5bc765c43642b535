package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBar waits for two seconds, then draws at most ten times a second, and leaves
// nothing on the line.
func TestBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := &Bar{newLine(&out)}
		time.Sleep(lineAfter)
		b.Show(0.2, "early")
		b.Clear()
		if out.Len() > 0 {
			t.Errorf("wrote %q in the first two seconds", &out)
		}
		time.Sleep(time.Millisecond)
		b.Show(0.5, "half\x1b[2J")
		b.Show(0.6, "too soon")
		time.Sleep(lineEach + time.Millisecond)
		b.Show(1, "all")
		b.Clear()
		b.Clear()
		half := "[" + strings.Repeat("#", 15) + strings.Repeat(" ", 15) + "]  50 % half�[2J"
		all := "[" + strings.Repeat("#", 30) + "] 100 % all"
		if want := clearLine + half + clearLine + all + clearLine; out.String() != want {
			t.Errorf("wrote %q, want %q", &out, want)
		}
	})
}

// TestBarIsForTerminals writes nothing into files and pipes.
func TestBarIsForTerminals(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synctest.Test(t, func(t *testing.T) {
		b := NewBar(file)
		time.Sleep(time.Minute)
		b.Show(0.5, "half")
		b.Clear()
	})
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("wrote %q, %v, want nothing", text, err)
	}
}
