package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := Table{Columns: []string{"bucket", ">rps"}}
	table.Add("pay/é", "1,200")
	table.Add("pay/\x1b[2Jall\nrows", "7")
	want := "bucket              rps\n" +
		"pay/é             1,200\n" +
		"pay/\ufffd[2Jall rows      7\n"
	if got := table.String(); got != want {
		t.Errorf("table\n%q, want\n%q", got, want)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain – é 漢\n\tx":      "plain – é 漢\n\tx",
		"\x1b]0;title\a":        "\ufffd]0;title\ufffd",
		"a\rb\x00\x7f":          "a\ufffdb\ufffd\ufffd",
		"evil\u202egnp.exe":     "evil\ufffdgnp.exe",
		"\u009b31m":             "\ufffd31m",
		string([]byte{0xff}):    "\ufffd",
		"zero\u200bwidth\u00a0": "zero\ufffdwidth\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "": false, "yes": true, "maybe\n": false} {
		var out bytes.Buffer
		got, err := Confirm(t.Context(), strings.NewReader(answer), &out, "Place it?")
		if err != nil || got != want || out.String() != "Place it? [y/N] " {
			t.Errorf("Confirm with %q = %v, %v after %q; want %v", answer, got, err, out.String(), want)
		}
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Is(f) || Asks(f, f) || Colours(f) || Is(&bytes.Buffer{}) {
		t.Error("a file is taken for a terminal")
	}
	if password, err := Password(t.Context(), f, f, "Password: "); err == nil {
		t.Errorf("password %q of a file", password)
	}
}

func TestFrameFitsTheScreen(t *testing.T) {
	if got, want := frame("one\ntwo two\nthree\n", 5, 2), home+"one"+clear+"\r\ntwo t"+clear+below; got != want {
		t.Errorf("frame %q, want %q", got, want)
	}
}
