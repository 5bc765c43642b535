package history_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/roles/configurator/history"
	"grl/store/storetest"
)

// patience is how long a real server may take to start.
const patience = 30 * time.Second

// counters is what clients of two regions exported until an hour ago: samples of
// shop/clean, and of shop/messy, with all that may happen to a history.
type counters struct {
	end  time.Time
	span time.Duration
	step time.Duration
}

// load is what one region is offered, in requests per second.
func load(at time.Time) float64 {
	hour := float64(at.Unix()%86400) / 3600
	return 100 - 60*math.Cos(hour/24*2*math.Pi)
}

// before reports whether at lies in [end-from, end-to).
func (c counters) before(at time.Time, from, to time.Duration) bool {
	return !at.Before(c.end.Add(-from)) && at.Before(c.end.Add(-to))
}

// write writes the samples with a format of name, labels, value and time, and
// returns how many there are.
func (c counters) write(w io.Writer, line func(labels string, value float64, at time.Time) string) int {
	n := 0
	for _, bucket := range []string{"shop/clean", "shop/messy"} {
		for i, region := range []string{"eu", "us"} {
			messy := bucket == "shop/messy"
			admitted, dropped := 1e6, 0.0
			for at := c.end.Add(-c.span - 10*c.step); !at.After(c.end.Add(10 * c.step)); at = at.Add(c.step) {
				requests := load(at) * c.step.Seconds()
				if messy && c.before(at, 50*time.Hour, 50*time.Hour-10*c.step) {
					dropped += requests / 10
					requests -= requests / 10
				}
				if admitted += requests; c.before(at, 90*time.Hour, 90*time.Hour-c.step) {
					admitted = requests // the process began anew
				}
				if messy && c.before(at, 20*time.Hour, 20*time.Hour-30*c.step) || messy && i == 1 && c.before(at, 30*time.Hour, 30*time.Hour-60*c.step) {
					continue // nobody was scraped, or one region was not
				}
				sample := at.Add(7 * time.Second) // as scrapes are: not on the minute
				for decision, v := range map[string]float64{"admitted": admitted, "dropped": dropped} {
					labels := fmt.Sprintf(`service="shop",bucket=%q,caller="",decision=%q,region=%q,instance="h%d"`, bucket, decision, region, i)
					fmt.Fprint(w, line(labels, math.Floor(v), sample))
					n++
				}
			}
		}
	}
	return n
}

// query asks for all that there is.
func (c counters) query() history.Query {
	q := want(limiter.Bucket{Name: "clean"}, limiter.Bucket{Name: "messy"}, limiter.Bucket{Name: "regional", Scope: limiter.Region})
	for i := range q.Buckets {
		q.Buckets[i].Bucket.Service = "shop"
	}
	q.From, q.To = c.end.Add(-c.span), c.end
	return q
}

// reach is over how many steps a rate tells of the load beside a gap, where it is
// taken from the samples that there are.
const reach = 2

// check reads from a real server, and compares with what was written.
func (c counters) check(t *testing.T, url string) map[string]history.Bucket {
	t.Helper()
	source, err := history.NewPrometheus(history.PrometheusOptions{URL: url, Step: c.step})
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(t, source, c.query())
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range got {
		if b.Err != nil {
			t.Fatalf("%s: %v", name, b.Err)
		}
		low := 0
		for i, rps := range b.Units[0].Series.RPS {
			at := b.Units[0].Series.Time(i)
			want := 2 * load(at)
			if most := max(want, 2*load(at.Add(-reach*c.step)), 2*load(at.Add(reach*c.step))); rps > 1.05*most {
				t.Fatalf("%s: %v rps at %v, want about %v", name, rps, at, want)
			}
			if rps < 0.95*want {
				low++
			}
		}
		if most := map[string]int{"shop/messy": 12}[name]; low > most { // where samples begin and end
			t.Errorf("%s: %d steps are too low, want %d at most", name, low, most)
		}
	}
	if u := got["shop/clean"].Units[0]; u.Refused+u.NoLower != "" || len(u.Series.RPS) < int(c.span/c.step)-5 {
		t.Errorf("clean: %d steps, refused %q, not lowered %q: %v", len(u.Series.RPS), u.Refused, u.NoLower, u.Notes)
	}
	u := got["shop/messy"].Units[0]
	known, _ := count(u)
	// A gap of 30, the silence of a region of 60, drops in 10: rates reach over
	// the edges by some steps, and bridge some.
	if unknown := len(u.Series.RPS) - known; u.Refused != "" || u.NoLower != "own_drops" || unknown < 85 || unknown > 115 {
		t.Errorf("messy: %d steps unknown, refused %q, not lowered %q, want 85 to 115, none, own_drops: %v", unknown, u.Refused, u.NoLower, u.Notes)
	}
	for _, note := range []string{"are missing", "lack a zone or region", "grl dropped some of it"} {
		if !strings.Contains(strings.Join(u.Notes, "; "), note) {
			t.Errorf("messy: notes %q, want %q in them", u.Notes, note)
		}
	}
	if u := got["shop/regional"].Units[0]; u.Refused != "no_data" {
		t.Errorf("a bucket without samples is refused with %q", u.Refused)
	}
	return got
}

// program starts a real server until the test ends, and waits until it answers.
func program(t *testing.T, ready string, name string, arguments ...string) {
	t.Helper()
	var log bytes.Buffer
	p := exec.Command(name, arguments...)
	p.Stdout, p.Stderr = &log, &log
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()         // killed
		if t.Failed() {
			t.Logf("%s said:\n%s", name, log.String()[max(0, log.Len()-2000):])
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if code, _ := post(t, ready, nil); code == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s does not answer after %v", name, patience)
}

// post sends a body, or gets if there is none; 0: there was no answer.
func post(t *testing.T, url string, body io.Reader) (code int, text string) {
	t.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(answer)
}

// installed returns where a program is, and skips the test if it is not there.
func installed(t *testing.T, name, packet string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian: %s)", name, packet)
	}
	return path
}

// startPrometheus starts a Prometheus that holds the samples.
func startPrometheus(t *testing.T, c counters) (url string) {
	t.Helper()
	binary, promtool := installed(t, "prometheus", "prometheus"), installed(t, "promtool", "prometheus")
	dir := t.TempDir()
	samples, config := filepath.Join(dir, "samples.txt"), filepath.Join(dir, "prometheus.yml")
	var text bytes.Buffer
	text.WriteString("# TYPE grl_client_requests counter\n")
	n := c.write(&text, func(labels string, value float64, at time.Time) string {
		return fmt.Sprintf("grl_client_requests_total{%s} %.0f %d\n", labels, value, at.Unix())
	})
	text.WriteString("# EOF\n")
	t.Logf("%d samples", n)
	for path, content := range map[string][]byte{samples: text.Bytes(), config: []byte("global: {}\n")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	if out, err := exec.CommandContext(t.Context(), promtool, "tsdb", "create-blocks-from", "--max-block-duration=744h", "openmetrics", samples, data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	url = fmt.Sprintf("http://127.0.0.1:%d", storetest.FreePorts(t, 1)[0])
	program(t, url+"/-/ready", binary, "--config.file="+config, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=60d", "--web.listen-address="+strings.TrimPrefix(url, "http://"))
	return url
}

// startVictoria starts a VictoriaMetrics that holds the samples.
func startVictoria(t *testing.T, c counters) (url string) {
	t.Helper()
	binary := installed(t, "victoria-metrics", "victoria-metrics")
	url = fmt.Sprintf("http://127.0.0.1:%d", storetest.FreePorts(t, 1)[0])
	program(t, url+"/health", binary, "-storageDataPath="+t.TempDir(), "-retentionPeriod=3", "-httpListenAddr="+strings.TrimPrefix(url, "http://"))
	var text bytes.Buffer
	c.write(&text, func(labels string, value float64, at time.Time) string {
		return fmt.Sprintf("grl_client_requests_total{%s} %.0f %d\n", labels, value, at.UnixMilli())
	})
	if code, answer := post(t, url+"/api/v1/import/prometheus", &text); code != http.StatusNoContent {
		t.Fatalf("import: %d %s", code, answer)
	}
	if code, answer := post(t, url+"/internal/force_flush", nil); code != http.StatusOK {
		t.Fatalf("flush: %d %s", code, answer)
	}
	return url
}

// The real servers give what was written, and the same as each other.
func TestRealServers(t *testing.T) {
	end := time.Now().Add(-2 * time.Hour).Truncate(time.Hour)
	tests := []struct {
		name string
		counters
	}{
		{"minutes of a week", counters{end, week, time.Minute}},
		{"five minutes of four weeks", counters{end, 4 * week, 5 * time.Minute}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prometheus := tt.check(t, startPrometheus(t, tt.counters))
			victoria := tt.check(t, startVictoria(t, tt.counters))
			for _, name := range []string{"shop/clean", "shop/messy"} {
				a, b := prometheus[name].Units[0], victoria[name].Units[0]
				x, y := policy.RobustPeak(a.Series.RPS), policy.RobustPeak(b.Series.RPS)
				if math.Abs(x-y) > 0.01*x {
					t.Errorf("%s: robust peaks of %v and %v rps", name, x, y)
				}
				knownA, _ := count(a)
				knownB, _ := count(b)
				if apart := knownA - knownB; apart < -5 || apart > 5 {
					t.Errorf("%s: %d and %d steps known", name, knownA, knownB)
				}
				if history.Disagrees(a.Series, b.Series) {
					t.Errorf("%s: they disagree of the last hour", name)
				}
			}
		})
	}
}
