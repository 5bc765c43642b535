package diff

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnified(t *testing.T) {
	before := "service: pay\nowner: a\nbuckets:\n  - name: all\n    limit: {rps: 5}\n    behavior: deny\nend\n"
	after := strings.Replace(before, "rps: 5", "rps: 7", 1)
	want := `--- r1
+++ r2
@@ -2,6 +2,6 @@
 owner: a
 buckets:
   - name: all
-    limit: {rps: 5}
+    limit: {rps: 7}
     behavior: deny
 end
`
	if diff := cmp.Diff(want, Unified(before, after, Options{From: "r1", To: "r2"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Unified(before, before, Options{}); got != "" {
		t.Errorf("equal texts differ: %q", got)
	}
	if got := Unified("", "a\n", Options{From: "x", To: "y", Colours: true}); got != "\x1b[1m--- x\x1b[0m\n\x1b[1m+++ y\x1b[0m\n\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+a\x1b[0m\n" {
		t.Errorf("new text: %q", got)
	}
	if got := Unified("a", "a\n", Options{}); !strings.Contains(got, "\n-a\n\\ no line feed at the end\n+a\n") {
		t.Errorf("line feed at the end: %q", got)
	}
}

// TestPatchGivesTheOtherText applies what Unified says to the text before.
func TestPatchGivesTheOtherText(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		before := text(random, random.IntN(30))
		after := mutate(random, before)
		diff := Unified(before, after, Options{})
		got, err := patch(before, diff)
		if err != nil || got != after {
			t.Fatalf("seed %d: %q with\n%s\ngives %q, %v; want %q", seed, before, diff, got, err, after)
		}
	}
}

func text(random *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "line %d\n", random.IntN(12))
	}
	return b.String()
}

func mutate(random *rand.Rand, before string) string {
	var out []string
	for _, l := range lines(before) {
		switch random.IntN(6) {
		case 0:
		case 1:
			out = append(out, "new "+strconv.Itoa(random.IntN(5))+"\n", l)
		default:
			out = append(out, l)
		}
	}
	return strings.Join(out, "")
}

// patch does what the program of that name does.
func patch(before, diff string) (string, error) {
	if diff == "" {
		return before, nil
	}
	source := lines(before)
	var out []string
	at := 0
	for i, l := range lines(diff)[2:] {
		if strings.HasPrefix(l, "@@") {
			var from int
			if _, err := fmt.Sscanf(l, "@@ -%d", &from); err != nil {
				return "", err
			}
			if !strings.Contains(strings.Fields(l)[1], ",0") {
				from--
			}
			out = append(out, source[at:from]...)
			at = from
			continue
		}
		switch text := l[1:]; l[0] {
		case '+':
			out = append(out, text)
		case ' ', '-':
			if source[at] != text {
				return "", fmt.Errorf("line %d: %q is not %q", i, source[at], text)
			}
			if at++; l[0] == ' ' {
				out = append(out, text)
			}
		}
	}
	return strings.Join(append(out, source[at:]...), ""), nil
}

func TestLargeTextsAreFast(t *testing.T) {
	var b strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&b, "  - name: b%d\n    behavior: deny\n", i)
	}
	before := b.String()
	after := strings.Replace(before, "b150000\n    behavior: deny", "b150000\n    behavior: allow", 1)
	began := time.Now()
	diff := Unified(before, after, Options{})
	if took := time.Since(began); strings.Count(diff, "\n") != 11 || took > 10*time.Second {
		t.Errorf("%v for\n%s", took, diff)
	}
}
