package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
)

// install gives l one service and returns how often a bucket of it was
// offered so far.
func install(t testing.TB, l *limiter.Limiter, s limiter.Service) (offered func(bucket string) uint64) {
	t.Helper()
	if err := l.Install(limiter.Configuration{Revision: 1, Services: []limiter.Service{s}}); err != nil {
		t.Fatal(err)
	}
	return func(bucket string) uint64 {
		t.Helper()
		l.Collect(time.Now())
		c := l.Cell(limiter.CellID{Bucket: s.Name + "/" + bucket})
		if c == nil {
			t.Fatalf("no cell of bucket %q", bucket)
		}
		return c.Counts().Offered
	}
}

// drop makes l drop all requests of a bucket.
func drop(t testing.TB, l *limiter.Limiter, bucket string) {
	t.Helper()
	c := l.Cell(limiter.CellID{Bucket: bucket})
	if c == nil {
		t.Fatalf("no cell of bucket %q", bucket)
	}
	c.SetRatio(1)
}

// answer sends r to h and returns the status.
func answer(h http.Handler, r *http.Request) int {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code
}

func rpc(caller string) *http.Request {
	r := httptest.NewRequest("POST", createCharge, nil)
	r.Header.Set("Content-Type", "application/proto")
	r.Header.Set("Connect-Protocol-Version", "1")
	r.Header.Set("Rpc-Caller", caller)
	return r
}

var teapot = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })

func TestMiddlewareDropsWhatTheBucketMatches(t *testing.T) {
	l := limiter.New(limiter.Options{})
	offered := install(t, l, limiter.Service{Name: "payments", Owner: "team", Buckets: []limiter.Bucket{{
		Name: "checkout", Match: limiter.Match{Caller: "checkout", Procedure: "payments.v1.Charges/Create"}, LimitRPS: 1, Behavior: limiter.Deny,
	}}})
	h := httplimit.Middleware(l, httplimit.Options{
		Service:  "payments",
		Identity: identity(t, httplimit.IdentityConfig{Headers: []string{"rpc-caller"}}),
	})(teapot)
	if got := answer(h, rpc("checkout")); got != http.StatusTeapot {
		t.Errorf("without a directive: status %d", got)
	}
	drop(t, l, "payments/checkout")
	if got := answer(h, rpc("checkout")); got != http.StatusTooManyRequests {
		t.Errorf("at ratio 1: status %d, want 429", got)
	}
	if got := answer(h, rpc("web")); got != http.StatusTeapot {
		t.Errorf("another caller: status %d", got)
	}
	if n := offered("checkout"); n != 2 {
		t.Errorf("offered %d, want 2", n)
	}
}

func TestMiddlewareAdmitsUnknownServices(t *testing.T) {
	h := httplimit.Middleware(limiter.New(limiter.Options{}), httplimit.Options{Service: "nobody"})(teapot)
	for range 100 {
		if got := answer(h, rpc("checkout")); got != http.StatusTeapot {
			t.Fatalf("status %d", got)
		}
	}
}

func TestPanicAdmitsAndIsCounted(t *testing.T) {
	l := limiter.New(limiter.Options{})
	install(t, l, limiter.Service{Name: "payments", Buckets: []limiter.Bucket{{Name: "all", Block: true, Behavior: limiter.Deny}}})
	h := httplimit.Middleware(l, httplimit.Options{
		Service:   "payments",
		Procedure: func(*http.Request) string { panic("broken") },
	})(teapot)
	for range 3 {
		if got := answer(h, rpc("checkout")); got != http.StatusTeapot {
			t.Errorf("status %d", got)
		}
	}
	l.Collect(time.Now())
	var panics uint64
	for key, n := range l.Unlimited() {
		if key == (limiter.UnlimitedKey{Service: "payments", Reason: limiter.Panicked}) {
			panics = n
		}
	}
	if panics != 3 {
		t.Errorf("%d panics counted, want 3", panics)
	}
}

func TestPanicOfTheHandlerGoesItsWay(t *testing.T) {
	h := httplimit.Middleware(limiter.New(limiter.Options{}), httplimit.Options{Service: "payments"})(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v, want http.ErrAbortHandler", v)
		}
	}()
	answer(h, rpc("checkout"))
	t.Error("the panic was swallowed")
}

func TestOneSideCounts(t *testing.T) {
	for _, enforce := range []limiter.Enforce{limiter.Inbound, limiter.Outbound} {
		for _, side := range []limiter.Enforce{limiter.Inbound, limiter.Outbound} {
			t.Run(enforce.String()+" at "+side.String(), func(t *testing.T) {
				l := limiter.New(limiter.Options{})
				offered := install(t, l, limiter.Service{Name: "payments", Enforce: enforce, Buckets: []limiter.Bucket{{Name: "all", LimitRPS: 1, Behavior: limiter.Deny}}})
				drop(t, l, "payments/all")
				gate := httplimit.NewGate(l, httplimit.Options{Service: "payments", Side: side})
				_, dropped := gate.Decide(rpc("checkout"))
				if want := enforce == side; dropped != want || offered("all") == 1 != want {
					t.Errorf("dropped %v, offered %d; want decided: %v", dropped, offered("all"), want)
				}
			})
		}
	}
}

func TestNewConfigurationBringsItsRoutesAndCosts(t *testing.T) {
	l := limiter.New(limiter.Options{})
	var procedures []string
	gate := httplimit.NewGate(l, httplimit.Options{Service: "payments"})
	decide := func() {
		r := httptest.NewRequest("GET", "/v1/charges/7", nil)
		r.Header.Set("X-Cost", "40")
		r.Header.Set("X-Weight", "5")
		d, dropped := gate.Decide(r)
		if !dropped {
			t.Fatal("admitted")
		}
		procedures = append(procedures, d.Procedure)
	}
	service := limiter.Service{Name: "payments", Routes: []string{"/v1/charges/{id}"}, Buckets: []limiter.Bucket{
		{Name: "all", LimitRPS: 1, Behavior: limiter.Deny, Cost: limiter.Cost{Header: "x-cost"}},
	}}
	offered := install(t, l, service)
	drop(t, l, "payments/all")
	decide()
	if n := offered("all"); n != 40 {
		t.Errorf("offered %d, want 40", n)
	}
	service.Routes = []string{"GET /v1/{rest...}"}
	service.Buckets[0].Cost.Header = "x-weight"
	install(t, l, service)
	drop(t, l, "payments/all")
	decide()
	if n := offered("all"); n != 45 {
		t.Errorf("offered %d, want 45", n)
	}
	if procedures[0] != "GET /v1/charges/{id}" || procedures[1] != "GET /v1/{rest...}" {
		t.Errorf("procedures %q", procedures)
	}
}

func TestMiddlewareUsesThePatternThatMatched(t *testing.T) {
	l := limiter.New(limiter.Options{})
	offered := install(t, l, limiter.Service{Name: "payments", Buckets: []limiter.Bucket{
		{Name: "with", Match: limiter.Match{Procedure: "GET /a/{id}"}, LimitRPS: 1},
		{Name: "without", Match: limiter.Match{Procedure: "PUT /b/{id}"}, LimitRPS: 1},
	}})
	limited := httplimit.Middleware(l, httplimit.Options{Service: "payments"})(teapot)
	mux := http.NewServeMux()
	mux.Handle("GET /a/{id}", limited)
	mux.Handle("/b/{id}", limited)
	answer(mux, httptest.NewRequest("GET", "/a/1", nil))
	answer(mux, httptest.NewRequest("PUT", "/b/1", nil))
	if offered("with") != 1 || offered("without") != 1 {
		t.Errorf("offered %d and %d, want 1 and 1", offered("with"), offered("without"))
	}
}

// TestReconfigurationUnderLoad installs configurations while requests are
// decided: none may be named or counted by a mixture.
func TestReconfigurationUnderLoad(t *testing.T) {
	l := limiter.New(limiter.Options{})
	service := func(n int) limiter.Service {
		s := limiter.Service{Name: "payments", Buckets: []limiter.Bucket{{Name: "all", Block: true, Behavior: limiter.Deny}}}
		for i := range n {
			s.Routes = append(s.Routes, "GET /v1/"+strconv.Itoa(i)+"/{id}")
		}
		return s
	}
	install(t, l, service(50))
	gate := httplimit.NewGate(l, httplimit.Options{Service: "payments"})
	gate.Decide(httptest.NewRequest("GET", "/v1/0/7", nil))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				d, dropped := gate.Decide(httptest.NewRequest("GET", "/v1/0/7", nil))
				if !dropped || d.Procedure != "GET /v1/0/{id}" {
					t.Errorf("dropped %v, procedure %q", dropped, d.Procedure)
					return
				}
			}
		})
	}
	for i := range 20 {
		install(t, l, service(51+i))
	}
	close(done)
	wg.Wait()
}

func TestDecideAllocatesNothing(t *testing.T) {
	l := limiter.New(limiter.Options{})
	install(t, l, limiter.Service{Name: "payments", Buckets: []limiter.Bucket{{Name: "all", LimitRPS: 1, Behavior: limiter.Deny, Cost: limiter.Cost{Header: "x-cost"}}}})
	gate := httplimit.NewGate(l, httplimit.Options{
		Service:  "payments",
		Identity: identity(t, httplimit.IdentityConfig{Headers: []string{"rpc-caller"}}),
	})
	r := rpc("checkout")
	if n := testing.AllocsPerRun(100, func() { gate.Decide(r) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkGate(b *testing.B) {
	l := limiter.New(limiter.Options{})
	install(b, l, limiter.Service{Name: "payments", Routes: routes, Buckets: []limiter.Bucket{{Name: "all", LimitRPS: 1, Behavior: limiter.Deny}}})
	gate := httplimit.NewGate(l, httplimit.Options{
		Service:  "payments",
		Identity: identity(b, httplimit.IdentityConfig{Headers: []string{"rpc-caller"}}),
	})
	route := httptest.NewRequest("GET", "/v1/charges/7", nil)
	route.Header.Set("Rpc-Caller", "checkout")
	for name, r := range map[string]*http.Request{"rpc": rpc("checkout"), "route": route} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gate.Decide(r)
			}
		})
	}
}
