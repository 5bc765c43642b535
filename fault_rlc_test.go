package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/store"
	"grl/store/storetest"
)

// webhookSecret is what calls of the webhook are signed with.
const webhookSecret = "a secret of the tests"

// A limitsRepo is a limits repository: the bare one that all push to, the
// checkout of the configurator, and that of a person.
type limitsRepo struct {
	t                    *testing.T
	bare, checkout, mine string
	secret               string // file
}

func newLimitsRepo(t *testing.T) *limitsRepo {
	t.Helper()
	dir := t.TempDir()
	r := &limitsRepo{
		t: t, bare: filepath.Join(dir, "limits.git"), checkout: filepath.Join(dir, "checkout"), mine: filepath.Join(dir, "mine"),
		secret: filepath.Join(dir, "secret"),
	}
	write(t, r.secret, webhookSecret)
	r.git(dir, "init", "--quiet", "--bare", "--initial-branch", "main", r.bare)
	r.git(dir, "clone", "--quiet", r.bare, r.mine)
	r.git(r.mine, "checkout", "--quiet", "-B", "main")
	return r
}

// git runs git and returns what it says.
func (r *limitsRepo) git(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// push has the person push a file.
func (r *limitsRepo) push(name, text, message string) {
	r.t.Helper()
	if len(r.git(r.bare, "branch", "--list", "main")) > 0 {
		r.git(r.mine, "pull", "--quiet", "--rebase", "origin", "main")
	}
	write(r.t, filepath.Join(r.mine, name), text)
	r.git(r.mine, "add", name)
	r.git(r.mine, "commit", "--quiet", "-m", message)
	r.git(r.mine, "push", "--quiet", "origin", "main")
}

// pushed returns a file, and author and subject of the newest commit, as they
// are in the bare repository.
func (r *limitsRepo) pushed(name string) (text, author, subject string) {
	r.t.Helper()
	text = r.git(r.bare, "show", "main:"+name)
	author, subject, _ = strings.Cut(r.git(r.bare, "log", "-1", "--format=%an%x00%s", "main"), "\x00")
	return text, author, subject
}

// call calls the webhook of a configurator as the host of the repository would.
func (r *limitsRepo) call(m *member) int {
	r.t.Helper()
	body := []byte(`{"ref": "refs/heads/main"}`)
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write(body)
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, m.url()+"/hooks/repository", bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// addConfigurator names a configurator with a limits repository.
func (f *fleet) addConfigurator(r *limitsRepo) *member {
	m := f.member("configurator")
	m.args = []string{
		"--role", "configurator", "--configurator.listen", m.control, "--configurator.controller", f.controller.url(),
		"--configurator.repository", r.checkout, "--configurator.webhook_secret_file", r.secret,
	}
	return m
}

// fillWeeks writes four weeks of minutes of the shop into the history of a
// controller that does not run: a day's curve with 100 requests per second at
// its highest.
func (f *fleet) fillWeeks() {
	f.t.Helper()
	s, err := store.Open(f.t.Context(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	const weeks = 4
	start := time.Now().UTC().Truncate(time.Hour).Add(-weeks * 7 * 24 * time.Hour)
	minutes := make([]uint64, int(time.Since(start)/time.Minute))
	for i := range minutes {
		at := start.Add(time.Duration(i) * time.Minute)
		minutes[i] = uint64(60 * (60 + 40*math.Cos(2*math.Pi*float64(at.Hour()*60+at.Minute())/1440)))
	}
	if err := storetest.Append(f.t.Context(), s, limiter.CellID{Bucket: "shop/everything"}, "zone-0", start, minutes, nil); err != nil {
		f.t.Fatal(err)
	}
}

// TestFaultLimitsRepository takes limits all the way round: from history over a
// cycle and a commit to the sidecars, from a person's commit, and from a person's
// edit at the controller back into the repository.
func TestFaultLimitsRepository(t *testing.T) {
	f := emptyFleet(t)
	r := newLimitsRepo(t)
	r.push("shop.yaml", "# The shop.\n"+shopLimit(300)+"    # see the runbook\n", "shop: its first limit")
	r.git(filepath.Dir(r.bare), "clone", "--quiet", r.bare, r.checkout)
	f.fillWeeks()
	f.addController("--controller.db", f.db)
	f.add([]zoneSize{{1, 2}}, nil)
	rlc := f.addConfigurator(r)
	f.start()
	rlc.launch()
	rlc.serving()

	f.limitIs(300)
	write(t, filepath.Join(rlc.dir, "peak.yaml"), "name: nightly\nkind: peak\nmode: apply\nmatch: {service: shop}\n")
	began := time.Now()
	f.controller.do("policy", "apply", "-f", filepath.Join(rlc.dir, "peak.yaml"))
	f.limitIs(240) // one step down
	report(t, "from a policy to a limit at the sidecars", time.Since(began).Seconds(), 0, "s")
	text, author, subject := r.pushed("shop.yaml")
	want := "# The shop.\n" + shopLimit(240) + "    # see the runbook"
	if text != want || author != "grl configurator" || !strings.HasPrefix(subject, "rlc: 1 limit by nightly (run ") {
		t.Errorf("%s: %s\n%s\nwant a commit that touches the limit alone:\n%s", author, subject, text, want)
	}
	eventually(t, "the run is done", func() bool { return strings.Contains(f.controller.do("rlc", "runs").stdout, "done") })
	show := f.controller.do("rlc", "show", "1")
	if !strings.Contains(show.stdout, "300 → 240 rps") {
		t.Errorf("grl rlc show 1:\n%s", show.stdout)
	}

	r.push("shop.yaml", "# The shop.\n"+shopLimit(270)+"    # see the runbook\n", "shop: more for the sale")
	began = time.Now()
	if code := r.call(rlc); code != http.StatusAccepted {
		t.Fatalf("webhook answers %d, want 202", code)
	}
	f.limitIs(270)
	took := time.Since(began)
	report(t, "from a commit with webhook to a limit at the sidecars", took.Seconds(), 10, "s")
	if took > 5*10*time.Second {
		t.Errorf("a commit was active after %v, want at most 10 s", took)
	}

	edited := filepath.Join(rlc.dir, "edited.yaml")
	write(t, edited, shopLimit(280))
	f.controller.do("apply", "-f", edited, "--reason", "sale goes well")
	f.limitIs(280)
	eventually(t, "the edit is in the repository", func() bool {
		text, _, _ := r.pushed("shop.yaml")
		return strings.Contains(text, "rps: 280")
	})
	if text, author, _ := r.pushed("shop.yaml"); author == "grl configurator" || !strings.Contains(text, "# see the runbook") {
		t.Errorf("%s wrote\n%s\nwant the editor as author, and all else as it was", author, text)
	}
	if status := r.git(r.checkout, "status", "--porcelain"); status != "" {
		t.Errorf("the checkout is not clean:\n%s", status)
	}
}

// limitIs waits until the shop's limit is active at the controller and all
// sidecars.
func (f *fleet) limitIs(rps float64) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("limit of %v rps at the controller", rps), func() bool {
		e := f.controller.ask("explain", "--service", "shop", "--caller", "web", "--procedure", "GET /", "-o", "json")
		return e.code == 0 && strings.Contains(strings.ReplaceAll(e.stdout, " ", ""), fmt.Sprintf(`"limitRps":%v,`, rps))
	})
	revision := f.controller.must("grl_controller_config_revision")
	for _, m := range f.sidecars {
		eventually(f.t, fmt.Sprintf("r%v at %s", revision, m.name), func() bool {
			held, ok := m.metric("grl_client_config_revision")
			return ok && held >= revision
		})
	}
}

// TestFaultConfiguratorKilled kills the configurator at random points of its
// work. Repository and controller are whole each time, and the next one goes on.
func TestFaultConfiguratorKilled(t *testing.T) {
	f := emptyFleet(t)
	r := newLimitsRepo(t)
	r.push("shop.yaml", shopLimit(299), "shop: its first limit")
	r.git(filepath.Dir(r.bare), "clone", "--quiet", r.bare, r.checkout)
	f.fillWeeks()
	f.addController("--controller.db", f.db)
	rlc := f.addConfigurator(r)
	f.start()
	write(t, filepath.Join(rlc.dir, "peak.yaml"), "name: nightly\nkind: peak\nmode: apply\nmatch: {service: shop}\n")
	rounds := 8
	if *measure {
		rounds = 100
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	for i := range rounds {
		limit := 300 + float64(i%5)
		r.push("shop.yaml", shopLimit(limit), fmt.Sprintf("shop: change %d", i))
		rlc.launch()
		if i == 0 {
			rlc.serving()
			f.controller.do("policy", "apply", "-f", filepath.Join(rlc.dir, "peak.yaml"))
		}
		pause(time.Duration(uint64(seed) * uint64(i+1) % uint64(1500*time.Millisecond)))
		rlc.kill()
		if _, err := os.Stat(filepath.Join(r.checkout, ".git", "index.lock")); err == nil {
			t.Logf("round %d: git was cut off and left its lock", i)
		}
		if held, ok := f.controller.metric("grl_controller_limit_requests_per_second"); ok && held < 239 {
			t.Fatalf("round %d: limit of %v rps, want one step of a fifth from 300 at most", i, held)
		}
		r.git(r.bare, "fsck", "--full")
		checked := f.controller.ask("check", r.mine)
		if checked.code != 0 {
			t.Fatalf("round %d: what is in the repository does not hold:\n%s", i, checked.stdout)
		}
	}
	r.push("shop.yaml", shopLimit(305), "shop: the last change")
	rlc.restart()
	f.limitIs(305)
	if e := f.controller.ask("audit", "verify"); e.code != 0 {
		t.Errorf("grl audit verify ended with %d:\n%s%s", e.code, e.stdout, e.stderr)
	}
}
