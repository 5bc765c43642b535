package desk_test

import (
	"strings"
	"testing"
	"time"

	"grl/roles/controller/desk"
	"grl/roles/controller/desk/desktest"
)

// Published: within 1 s each. The slack is what a loaded machine needs.
const poisonBound = slower * 5 * time.Second

func TestPoisonIsRefused(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"))
	cases := desktest.Poison()
	if len(cases) < 300 {
		t.Fatalf("%d cases, want at least 300", len(cases))
	}
	var slowest time.Duration
	var name string
	for _, c := range cases {
		files := c.Files()
		began := time.Now()
		_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: files, Prune: true, Force: true, Reason: "poison"})
		took := time.Since(began)
		if took > slowest {
			slowest, name = took, c.Name
		}
		if took > poisonBound {
			t.Errorf("%s: took %v", c.Name, took)
		}
		if err == nil {
			t.Errorf("%s: accepted", c.Name)
			continue
		}
		for _, p := range want[*desk.InvalidError](t, err).Problems {
			if p.Where == "" || p.Text == "" || (p.Line == 0 || p.Column == 0) && !c.Whole {
				t.Errorf("%s: problem %q has no place or says nothing", c.Name, p)
			}
			if len(p.Text) > 600 || strings.ContainsFunc(p.Text, func(r rune) bool { return r < ' ' }) {
				t.Errorf("%s: problem %.100q of %d bytes", c.Name, p.Text, len(p.Text))
			}
		}
	}
	t.Logf("%d cases, the slowest took %v: %s", len(cases), slowest, name)
	r.wantLimits("payments/web=100")
	if head, err := r.ledger.Head(t.Context()); err != nil || head.Number != 1 {
		t.Errorf("head is r%d, %v; want r1", head.Number, err)
	}
}
