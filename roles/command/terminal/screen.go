package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

const (
	enter = "\x1b[?1049h\x1b[?25l" // another screen, no cursor
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	clear = "\x1b[K" // the rest of the line
	below = "\x1b[J" // what is below
)

// Screen is a terminal that is drawn again and again, beside what it showed
// before. Create it with OpenScreen and close it.
type Screen struct {
	in, out *os.File
	before  *term.State
	keys    chan byte
}

// OpenScreen takes the terminal over. Key presses go to Keys.
func OpenScreen(in, out *os.File) (*Screen, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &Screen{in: in, out: out, before: before, keys: make(chan byte)}
	if _, err := io.WriteString(out, enter); err != nil {
		_ = term.Restore(int(in.Fd()), before)
		return nil, err
	}
	go s.read()
	return s, nil
}

// read passes key presses on. A read of a terminal cannot be interrupted, so it
// goes on until the next key press or the end of the process.
func (s *Screen) read() {
	buffer := make([]byte, 1)
	for {
		if _, err := s.in.Read(buffer); err != nil {
			close(s.keys)
			return
		}
		s.keys <- buffer[0]
	}
}

// Keys has the bytes of the keys that are pressed; it is closed when there are
// no more.
func (s *Screen) Keys() <-chan byte { return s.keys }

// Draw shows text from the top on, as much of it as fits.
func (s *Screen) Draw(text string) error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.out, frame(text, width, height))
	return err
}

// Rows returns how many lines fit.
func (s *Screen) Rows() int {
	_, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		return 0
	}
	return height
}

// frame returns what draws text on a screen of that size.
func frame(text string, width, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[:min(len(lines), height)]
	for i, l := range lines {
		if runes := []rune(l); len(runes) > width {
			l = string(runes[:width])
		}
		lines[i] = l + clear
	}
	return home + strings.Join(lines, "\r\n") + below
}

// Close gives the terminal back as it was.
func (s *Screen) Close() error {
	_, err := io.WriteString(s.out, leave)
	if restored := term.Restore(int(s.in.Fd()), s.before); err == nil {
		err = restored
	}
	return err
}
