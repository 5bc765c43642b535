package history_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/roles/configurator/history"
	"grl/roles/rolestest"
)

// server is a server that answers the queries of the source as Prometheus would,
// from functions of time.
type server struct {
	series []promSeries
	// warnings go with each answer; partial is how VictoriaMetrics says so.
	warnings []string
	partial  bool
	// change changes the values of a series, which are pairs of seconds and text.
	change func(values [][2]any) [][2]any
	// first answers instead, unless it returns false.
	first func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex // guards the following: a query that was given up may still be here
	queries []string
	points  int // most that a query asked for
	header  http.Header
}

// promSeries is one series that a query gives: NaN is no value.
type promSeries struct {
	bucket  string
	labels  map[string]string
	rps     func(time.Time) float64
	dropped func(time.Time) float64
}

func steady(rps float64) func(time.Time) float64 { return func(time.Time) float64 { return rps } }

var (
	selector = regexp.MustCompile(`bucket=~("(?:[^"\\]|\\.)*")`)
	grouped  = regexp.MustCompile(`^(?:sum|max) by \(([a-z,]*)\)`)
)

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.header = r.Header
	s.mu.Unlock()
	if s.first != nil && s.first(w, r) {
		return
	}
	query := r.FormValue("query")
	start, end, step := number(r, "start"), number(r, "end"), number(r, "step")
	s.mu.Lock()
	s.queries = append(s.queries, query)
	s.points = max(s.points, int((end-start)/step)+1)
	s.mu.Unlock()
	quoted, _ := strconv.Unquote(selector.FindStringSubmatch(query)[1])
	buckets := regexp.MustCompile("^(?:" + quoted + ")$")
	result := []any{}
	for _, series := range s.series {
		rps := series.rps
		if strings.Contains(query, `decision="dropped"`) {
			rps = series.dropped
		}
		if rps == nil || !buckets.MatchString(series.bucket) {
			continue
		}
		var values [][2]any
		for t := start; t <= end; t += step {
			// The value is of the step that ends at t.
			v := rps(time.Unix(int64(t-step), 0))
			if !math.IsNaN(v) && !(strings.HasSuffix(query, "> 0") && v <= 0) {
				values = append(values, [2]any{t, strconv.FormatFloat(v, 'g', -1, 64)})
			}
		}
		if s.change != nil && !strings.HasSuffix(query, "> 0") {
			values = s.change(values)
		}
		metric := map[string]string{"bucket": series.bucket}
		for _, label := range strings.Split(grouped.FindStringSubmatch(query)[1], ",") {
			if v, ok := series.labels[label]; ok {
				metric[label] = v
			}
		}
		if len(values) > 0 {
			result = append(result, map[string]any{"metric": metric, "values": values})
		}
	}
	s.answer(w, result)
}

func (s *server) answer(w http.ResponseWriter, result []any) {
	data, err := json.Marshal(map[string]any{"resultType": "matrix", "result": result})
	if err != nil {
		panic(err)
	}
	warnings, _ := json.Marshal(s.warnings)
	partial := ""
	if s.partial {
		partial = `"isPartial":true,`
	}
	fmt.Fprintf(w, `{"status":"success",%s"data":%s,"warnings":%s}`, partial, data, warnings)
}

func number(r *http.Request, key string) float64 {
	v, err := strconv.ParseFloat(r.FormValue(key), 64)
	if err != nil {
		panic(err)
	}
	return v
}

// source returns a source that asks the server, which it calls prometheus.
func (s *server) source(t *testing.T, o history.PrometheusOptions) *history.Prometheus {
	t.Helper()
	var network rolestest.Network
	network.Serve(t, "prometheus", s)
	network.Serve(t, "elsewhere", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	o.URL, o.Transport = "http://prometheus/select/0", network.Client(t).Transport
	p, err := history.NewPrometheus(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask reads buckets of the week before night from the server.
func (s *server) ask(t *testing.T, buckets ...limiter.Bucket) (map[string]history.Bucket, error) {
	t.Helper()
	return s.askSince(t, night.Add(-week), buckets...)
}

func (s *server) askSince(t *testing.T, from time.Time, buckets ...limiter.Bucket) (map[string]history.Bucket, error) {
	t.Helper()
	q := want(buckets...)
	q.From, q.To = from, night
	return collect(t, s.source(t, history.PrometheusOptions{}), q)
}

func TestPrometheusUnits(t *testing.T) {
	in := func(label, value string, rps float64) promSeries {
		return promSeries{bucket: "s/b", labels: map[string]string{label: value}, rps: steady(rps)}
	}
	tests := []struct {
		name   string
		bucket limiter.Bucket
		series []promSeries
		want   map[string]float64
		query  string // that is asked, in part
	}{
		{"global", limiter.Bucket{}, []promSeries{{bucket: "s/b", rps: steady(3)}}, map[string]float64{"": 3}, `sum by (bucket,region) (rate(grl_client_requests_total{bucket=~"s/b"}[120s])) or sum by`},
		{"global, of two regions", limiter.Bucket{}, []promSeries{in("region", "eu", 3), in("region", "us", 2)}, map[string]float64{"": 5}, ""},
		{"a region each", limiter.Bucket{Scope: limiter.Region}, []promSeries{in("region", "eu", 3), in("region", "us", 2)}, map[string]float64{"eu": 3, "us": 2}, ""},
		{"the highest zone", limiter.Bucket{Scope: limiter.Zone}, []promSeries{in("zone", "a", 3), in("zone", "b", 2)}, map[string]float64{"": 3}, "sum by (bucket,zone) (rate"},
		{"the highest caller", limiter.Bucket{PerCaller: true}, []promSeries{{bucket: "s/b", rps: steady(3)}}, map[string]float64{"": 3}, "max by (bucket) (sum by (bucket,caller) (rate"},
		{"the highest caller of a region", limiter.Bucket{PerCaller: true, Scope: limiter.Region}, []promSeries{in("region", "eu", 3)}, map[string]float64{"eu": 3}, "max by (bucket,region) (sum by (bucket,region,caller) (rate"},
		{"callers that share", limiter.Bucket{Share: limiter.MaxMin}, []promSeries{{bucket: "s/b", rps: steady(3)}}, map[string]float64{"": 3}, "sum by (bucket,region) (rate"},
		{"nothing", limiter.Bucket{}, nil, map[string]float64{"": 0}, ""},
		{"another bucket's", limiter.Bucket{}, []promSeries{{bucket: "s/bb", rps: steady(3)}}, map[string]float64{"": 0}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{series: tt.series}
			tt.bucket.Name = "b"
			got, err := s.ask(t, tt.bucket)
			if err != nil {
				t.Fatal(err)
			}
			b := got["s/b"]
			if b.Err != nil || len(b.Units) != len(tt.want) {
				t.Fatalf("%d units, %v; want %d", len(b.Units), b.Err, len(tt.want))
			}
			for _, u := range b.Units {
				known, highest := count(u)
				if rps := tt.want[u.Instance]; math.Abs(highest-rps) > 1e-9 || (rps > 0) != (known == 7*24*60) || (rps == 0) != (u.Refused == "no_data") {
					t.Errorf("%q: %v rps, %d minutes known, refused %q; want %v", u.Instance, highest, known, u.Refused, rps)
				}
			}
			if !slices.ContainsFunc(s.queries, func(q string) bool { return strings.Contains(q, tt.query) }) {
				t.Errorf("asked %q, want one with %q", s.queries, tt.query)
			}
		})
	}
	t.Run("a region without the label", func(t *testing.T) {
		s := &server{series: []promSeries{{bucket: "s/b", rps: steady(3)}}}
		got, err := s.ask(t, limiter.Bucket{Name: "b", Scope: limiter.Region})
		if b := got["s/b"]; err != nil || b.Err == nil || !strings.Contains(b.Err.Error(), `without label "region"`) {
			t.Errorf("%v, %v", b.Err, err)
		}
	})
}

// A value is of the step before its time, and steps lie where they belong, over
// the borders of queries too.
func TestPrometheusSteps(t *testing.T) {
	s := &server{series: []promSeries{{bucket: "s/b", rps: func(at time.Time) float64 { return 1 + float64(at.Unix()/60%1000) }}}}
	q := want(limiter.Bucket{Name: "b"})
	q.From, q.To = night.Add(-3*week), night
	got, err := collect(t, s.source(t, history.PrometheusOptions{}), q)
	if err != nil {
		t.Fatal(err)
	}
	u := got["s/b"].Units[0]
	for i, rps := range u.Series.RPS {
		if at := u.Series.Time(i); rps != 1+float64(at.Unix()/60%1000) {
			t.Fatalf("%v rps at %v", rps, at)
		}
	}
	if len(u.Series.RPS) != 3*7*24*60 || u.Refused+u.NoLower != "" {
		t.Errorf("%d steps, refused %q, not lowered %q: %v", len(u.Series.RPS), u.Refused, u.NoLower, u.Notes)
	}
	if s.points > 11000 {
		t.Errorf("a query asks for %d points, Prometheus answers 11,000", s.points)
	}
}

// The faults 50 to 53: what the server says is cleaned, or refused with a reason.
func TestPrometheusFaults(t *testing.T) {
	each := func(to func(i int, v [2]any) [][2]any) func([][2]any) [][2]any {
		return func(values [][2]any) [][2]any {
			var out [][2]any
			for i, v := range values {
				out = append(out, to(i, v)...)
			}
			return out
		}
	}
	some := func(text string) func([][2]any) [][2]any {
		return each(func(i int, v [2]any) [][2]any {
			if i%100 == 50 {
				v[1] = text
			}
			return [][2]any{v}
		})
	}
	gap := func(from, to time.Duration, rps float64) func(time.Time) float64 {
		return func(at time.Time) float64 {
			if !at.Before(night.Add(-from)) && at.Before(night.Add(-to)) {
				return math.NaN()
			}
			return rps
		}
	}
	regions := func(third func(time.Time) float64) []promSeries {
		var all []promSeries
		for _, region := range []string{"eu", "us"} {
			all = append(all, promSeries{bucket: "s/b", labels: map[string]string{"region": region}, rps: steady(10)})
		}
		return append(all, promSeries{bucket: "s/b", labels: map[string]string{"region": "asia"}, rps: third})
	}
	plain := []promSeries{{bucket: "s/b", rps: steady(10)}}
	tests := []struct {
		name             string
		server           *server
		refused, noLower string
		known            int // minutes; 0: not looked at
	}{
		{"as it should be", &server{series: plain}, "", "", 10080},
		{"empty", &server{}, "no_data", "", 0},
		{"an empty series", &server{series: plain, change: func([][2]any) [][2]any { return nil }}, "no_data", "", 0},
		{"NaN and stale markers", &server{series: plain, change: some("NaN")}, "", "nan", 9979},
		{"infinite", &server{series: plain, change: some("+Inf")}, "", "nan", 9979},
		{"minus infinite", &server{series: plain, change: some("-Inf")}, "", "nan", 9979},
		{"negative", &server{series: plain, change: some("-3")}, "", "negative", 9979},
		{"beyond any load", &server{series: plain, change: some("1e300")}, "", "nan", 9979},
		{"duplicates", &server{series: plain, change: each(func(_ int, v [2]any) [][2]any { return [][2]any{v, v} })}, "", "duplicated", 10080},
		{"out of order", &server{series: plain, change: func(v [][2]any) [][2]any { v[7], v[9] = v[9], v[7]; return v }}, "", "out_of_order", 10080},
		{"one point", &server{series: plain, change: func(v [][2]any) [][2]any { return v[len(v)-1:] }}, "short_history", "", 1},
		{"a fifth and more missing", &server{series: plain, change: each(func(i int, v [2]any) [][2]any {
			if i%4 == 0 {
				return nil
			}
			return [][2]any{v}
		})}, "coverage", "", 0},
		{"a gap", &server{series: []promSeries{{bucket: "s/b", rps: gap(50*time.Hour, 49*time.Hour, 10)}}}, "", "partial", 10020},
		{"the last minutes are not there yet", &server{series: []promSeries{{bucket: "s/b", rps: gap(5*time.Minute, 0, 10)}}}, "", "", 10075},
		{"one region of three is missing for an hour", &server{series: regions(gap(50*time.Hour, 49*time.Hour, 10))}, "", "partial", 10020},
		{"a region is there now and then", &server{series: regions(func(at time.Time) float64 {
			if at.Hour() == 3 {
				return 10
			}
			return math.NaN()
		})}, "", "", 10080},
		{"warnings", &server{series: plain, warnings: []string{"a store did not answer"}}, "", "partial", 10080},
		{"partial, as VictoriaMetrics says it", &server{series: plain, partial: true}, "", "partial", 10080},
		{"all 0", &server{series: []promSeries{{bucket: "s/b", rps: steady(0)}}}, "zero", "", 0},
		{"own drops yesterday", &server{series: []promSeries{{bucket: "s/b", rps: steady(10), dropped: func(at time.Time) float64 {
			if at.Equal(night.Add(-day)) {
				return 1
			}
			return 0
		}}}}, "", "own_drops", 10079},
		{"a cap of ten minutes", &server{series: append(plain, promSeries{bucket: "s/_cap", rps: func(at time.Time) float64 {
			if at.Before(night.Add(-50*time.Minute)) || !at.Before(night.Add(-40*time.Minute)) {
				return 0
			}
			return 1
		}})}, "", "", 10070},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.server.ask(t, limiter.Bucket{Name: "b"})
			if err != nil || got["s/b"].Err != nil {
				t.Fatal(err, got["s/b"].Err)
			}
			u := got["s/b"].Units[0]
			known, highest := count(u)
			if u.Refused != tt.refused || u.NoLower != tt.noLower || tt.known > 0 && known != tt.known {
				t.Errorf("%d minutes, refused %q, not lowered %q; want %d, %q, %q: %v", known, u.Refused, u.NoLower, tt.known, tt.refused, tt.noLower, u.Notes)
			}
			if highest > 30 {
				t.Errorf("%v rps were learnt", highest)
			}
		})
	}
}

// A source that says 0 of a live bucket disagrees with the controller's own.
func TestPrometheusZeroOfLive(t *testing.T) {
	s := &server{series: []promSeries{{bucket: "s/b", rps: func(at time.Time) float64 {
		if at.Before(night.Add(-2 * time.Hour)) {
			return 10
		}
		return 0
	}}}}
	theirs, err := s.ask(t, limiter.Bucket{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	p := weeks(1, "a")
	p.cell(limiter.CellID{Bucket: "s/b"}, 600)
	own, err := read(t, p, want(limiter.Bucket{Name: "b"}))
	if err != nil {
		t.Fatal(err)
	}
	u := theirs["s/b"].Units[0]
	if u.NoLower != "zero" && !history.Disagrees(u.Series, own["s/b"].Units[0].Series) {
		t.Errorf("neither the zeros nor the difference is seen: %v", u.Notes)
	}
	// The zeros are unknown by then: a source that was always 0 is what differs.
	s.series[0].rps = steady(1)
	if theirs, err = s.ask(t, limiter.Bucket{Name: "b"}); err != nil || !history.Disagrees(theirs["s/b"].Units[0].Series, own["s/b"].Units[0].Series) {
		t.Errorf("a tenth of the load does not differ: %v", err)
	}
}

// Fault 54: what is slow, broken, hostile or elsewhere ends in an error in time.
func TestPrometheusErrors(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no", code)
			return true
		}
	}
	text := func(body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, body)
			return true
		}
	}
	tests := []struct {
		name  string
		first func(http.ResponseWriter, *http.Request) bool
		text  string
		asked int
	}{
		{"slow", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }, "deadline exceeded", 3},
		{"500", status(500), "server error: 500", 3},
		{"503", status(503), "server error: 503", 3},
		{"429", status(429), "client error: 429", 3},
		{"401", status(401), "client error: 401", 1},
		{"404", status(404), "client error: 404", 1},
		{"400, no JSON", status(400), "client error: 400", 1},
		{"wrong JSON", text(`{"status":"success","data":{`), "unexpected", 1},
		{"HTML", text("<html>"), "invalid character", 1},
		{"nothing", text(""), "unexpected end", 1},
		{"a string instead of a matrix", text(`{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`), "", 1},
		{"no data", text(`{"status":"success"}`), "want a matrix", 1},
		{"an error that says 200", text(`{"status":"error","errorType":"internal","error":"oh"}`), "oh", 1},
		{"values that are none", text(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"bucket":"s/b"},"values":[["a","b"]]}]}}`), "", 1},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
			return true
		}, "refused: redirect from prometheus to elsewhere", 1},
		{"round and round", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}, "more than 3 redirects", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				s := &server{first: func(w http.ResponseWriter, r *http.Request) bool { asked.Add(1); return tt.first(w, r) }}
				begin := time.Now()
				got, err := s.ask(t, limiter.Bucket{Name: "b"})
				if err == nil || !strings.Contains(err.Error(), tt.text) || len(got) != 0 {
					t.Errorf("%v, err = %v; want %q", got, err, tt.text)
				}
				if n := int(asked.Load()); n != tt.asked {
					t.Errorf("asked %d times, want %d", n, tt.asked)
				}
				if took := time.Since(begin); took > 3*30*time.Second+5*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A server that is in trouble for a moment is asked again.
func TestPrometheusGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		s := &server{series: []promSeries{{bucket: "s/b", rps: steady(3)}}}
		s.first = func(w http.ResponseWriter, _ *http.Request) bool {
			if failures == 0 {
				return false
			}
			failures--
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return true
		}
		got, err := s.ask(t, limiter.Bucket{Name: "b"})
		if err != nil || got["s/b"].Units[0].Refused != "" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// What fails for some buckets leaves the others alone; a source that goes away is
// given up.
func TestPrometheusOfManyBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var buckets []limiter.Bucket
		for i := range 50 {
			name := fmt.Sprintf("b%02d", i)
			buckets = append(buckets, limiter.Bucket{Name: name})
			s.series = append(s.series, promSeries{bucket: "s/" + name, rps: steady(float64(i + 1))})
		}
		got, err := s.askSince(t, night.Add(-day), buckets...)
		if err != nil || len(got) != 50 {
			t.Fatalf("%d buckets, %v", len(got), err)
		}
		for i, b := range buckets {
			if _, highest := count(got["s/"+b.Name].Units[0]); highest != float64(i+1) {
				t.Errorf("%s: %v rps", b.Name, highest)
			}
		}
		fails := func(bucket string) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.FormValue("query"), bucket) {
					return false
				}
				http.Error(w, "no", http.StatusInternalServerError)
				return true
			}
		}
		s.first = fails("s/b25")
		if got, err = s.askSince(t, night.Add(-day), buckets...); err != nil || got["s/b10"].Err != nil || got["s/b30"].Err == nil || got["s/b45"].Err != nil {
			t.Errorf("one batch fails: %v, errors %v, %v, %v", err, got["s/b10"].Err, got["s/b30"].Err, got["s/b45"].Err)
		}
		s.first = func(w http.ResponseWriter, r *http.Request) bool {
			return fails("s/b25")(w, r) || fails("s/b45")(w, r)
		}
		if got, err = s.askSince(t, night.Add(-day), buckets...); err == nil || len(got) != 40 {
			t.Errorf("two batches fail: %d buckets, %v; want 40 and an error", len(got), err)
		}
	})
}

// An answer beyond 32 MiB is asked for in halves, and never without end.
func TestPrometheusLargeAnswers(t *testing.T) {
	large := func(w http.ResponseWriter) bool {
		w.Header().Set("Content-Length", "40000000")
		w.WriteHeader(http.StatusOK)
		return true
	}
	s := &server{}
	var buckets []limiter.Bucket
	for i := range 8 {
		buckets = append(buckets, limiter.Bucket{Name: fmt.Sprint("b", i)})
		s.series = append(s.series, promSeries{bucket: fmt.Sprint("s/b", i), rps: steady(1)})
	}
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		first, _, _ := strings.Cut(r.FormValue("query"), "[")
		return (strings.Count(first, "|") >= 2 || strings.Contains(first, "s/b7")) && large(w)
	}
	got, err := s.ask(t, buckets...)
	if err != nil || got["s/b0"].Err != nil || got["s/b6"].Err != nil {
		t.Fatalf("%v; %v, %v", err, got["s/b0"].Err, got["s/b6"].Err)
	}
	if b := got["s/b7"]; b.Err == nil || !strings.Contains(b.Err.Error(), "more than 32 MiB") {
		t.Errorf("err = %v of the bucket whose answer has no end", b.Err)
	}
	for _, b := range buckets[:7] {
		if u := got["s/"+b.Name].Units[0]; u.Refused+u.NoLower != "" {
			t.Errorf("%s: refused %q, not lowered %q", b.Name, u.Refused, u.NoLower)
		}
	}

	var calls atomic.Int32
	s.first = func(w http.ResponseWriter, _ *http.Request) bool { calls.Add(1); return large(w) }
	if got, err = s.ask(t, buckets...); err != nil || got["s/b0"].Err == nil || calls.Load() > 100 {
		t.Errorf("err = %v, %v after %d answers that are too large", err, got["s/b0"].Err, calls.Load())
	}

	calls.Store(0)
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		calls.Add(1)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		return true
	}
	if got, err = s.ask(t, buckets[0]); err != nil || got["s/b0"].Err == nil || calls.Load() > 10 {
		t.Errorf("err = %v, %v after %d answers without end", err, got["s/b0"].Err, calls.Load())
	}
}

func TestPrometheusProves(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{series: []promSeries{{bucket: "s/b", rps: steady(3)}}}
	q := want(limiter.Bucket{Name: "b"})
	q.From, q.To = night.Add(-day), night
	if _, err := collect(t, s.source(t, history.PrometheusOptions{TokenFile: token, Tenant: "t1"}), q); err != nil {
		t.Fatal(err)
	}
	if s.header.Get("Authorization") != "Bearer secret" || s.header.Get("X-Scope-OrgID") != "t1" {
		t.Errorf("header = %v", s.header)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t, s.source(t, history.PrometheusOptions{TokenFile: token}), q); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("err = %v without the file", err)
	}
	for _, u := range []string{"", "127.0.0.1:9090", "ftp://x", "http://", "\x00"} {
		if _, err := history.NewPrometheus(history.PrometheusOptions{URL: u}); err == nil {
			t.Errorf("%q is taken for a URL", u)
		}
	}
}

func FuzzPrometheusAnswer(f *testing.F) {
	for _, body := range []string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"bucket":"s/b"},"values":[[1795999980,"1"]]}]}}`,
		`{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[{"metric":{"bucket":"s/b","region":"eu"},"values":[[1e300,"NaN"],[-5,"-1"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":null},{"metric":{"bucket":"s/_cap"},"histograms":[]}]},"warnings":["w"]}`,
		`{"status":"error"}`, `{"status":"success"}`, `{}`, `[]`, ``,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := &server{first: func(w http.ResponseWriter, _ *http.Request) bool { fmt.Fprint(w, body); return true }}
		q := want(limiter.Bucket{Name: "b"})
		q.From, q.To = night.Add(-time.Hour), night
		got, err := collect(t, s.source(t, history.PrometheusOptions{}), q)
		if err != nil {
			return
		}
		for _, u := range got["s/b"].Units {
			for _, rps := range u.Series.RPS {
				if policy.Known(rps) && !(rps >= 0 && rps <= 1e12) {
					t.Fatalf("%v rps are learnt", rps)
				}
			}
		}
	})
}
