package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"grl/roles/controller/desk/desktest"
)

// Published: within 1 s each. The slack is what a loaded machine needs.
const poisonBound = 5 * time.Second

// TestApplyRefusesPoison has each case refused with its place, on lines that a
// terminal can show, and nothing changed.
func TestApplyRefusesPoison(t *testing.T) {
	control(t)
	writeFile(t, "good/payments.yaml", limits)
	expect(t, 0, "added    …", "apply", "-f", "good")
	place := regexp.MustCompile(`(?m)\.ya?ml:\d+:\d+: .`)
	cases := desktest.Poison()
	if len(cases) < 300 {
		t.Fatalf("%d cases, want at least 300", len(cases))
	}
	for _, c := range cases {
		if c.Name == "large: no files" || strings.HasPrefix(c.Name, "large: a file with") {
			continue // of names that no file of a directory has
		}
		dir := filepath.Join("poison", "limits")
		for _, f := range c.Files() {
			writeFile(t, filepath.Join(dir, strings.TrimSuffix(f.Name, ".yaml")+".yaml"), string(f.Data))
		}
		began := time.Now()
		r := grl(t, "apply", "-f", dir, "--prune", "--force", "--reason", "poison")
		if took := time.Since(began); took > poisonBound {
			t.Errorf("%s: took %v", c.Name, took)
		}
		if r.code != 1 || r.out != "" || !c.Whole && !place.MatchString(r.errOut) || strings.Contains(r.errOut, "cannot reach") {
			t.Errorf("%s: exit code %d, %.300q %.300q", c.Name, r.code, r.out, r.errOut)
		}
		if i := strings.IndexFunc(r.errOut, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }); i >= 0 {
			t.Errorf("%s: prints %q", c.Name, r.errOut[i])
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, 0, "nothing changed: r1 holds\n", "apply", "-f", "good")
}
