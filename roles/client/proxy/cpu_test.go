package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/roles/client/proxy"
)

// childEnv makes the test binary one of the servers of BenchmarkSidecarCPU.
const childEnv = "GRL_TEST_PROXY_CHILD"

func TestMain(m *testing.M) {
	if child := os.Getenv(childEnv); child != "" {
		if err := serveChild(child, os.Getenv(childEnv+"_UPSTREAM")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	cpuPairs = 15
	cpuRound = 2 * time.Second // of load on each process in a pair
	cpuRate  = 1000            // requests a second: well below what one core can do
	cpuConns = 16
)

// BenchmarkSidecarCPU compares the CPU time of a sidecar with that of a bare
// httputil.ReverseProxy of the same tuning, each a process of its own behind
// the same load, in interleaved pairs. It reports the median of the pairs'
// ratios, and the medians of both in microseconds a request. One run is the
// measurement; it takes about a minute.
func BenchmarkSidecarCPU(b *testing.B) {
	upstream := startChild(b, "upstream", "")
	bare := startChild(b, "bare", "http://"+upstream.addr)
	sidecar := startChild(b, "sidecar", "http://"+upstream.addr)
	for _, c := range []*child{bare, sidecar} { // connections, caches, heap
		c.measure(b)
	}
	for b.Loop() {
		var ratios, bareMicros, sidecarMicros []float64
		for i := range cpuPairs {
			var costBare, costSidecar float64
			if i%2 == 0 { // neither is always the first
				costBare, costSidecar = bare.measure(b), sidecar.measure(b)
			} else {
				costSidecar, costBare = sidecar.measure(b), bare.measure(b)
			}
			ratios = append(ratios, costSidecar/costBare)
			bareMicros = append(bareMicros, costBare)
			sidecarMicros = append(sidecarMicros, costSidecar)
		}
		slices.Sort(ratios)
		b.Logf("ratios from %.3f to %.3f, quartiles %.3f and %.3f", ratios[0], ratios[cpuPairs-1], ratios[cpuPairs/4], ratios[cpuPairs-1-cpuPairs/4])
		b.ReportMetric(ratios[cpuPairs/2], "ratio")
		b.ReportMetric(median(bareMicros), "bare-µs/req")
		b.ReportMetric(median(sidecarMicros), "sidecar-µs/req")
		b.ReportMetric(0, "ns/op")
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// child is a process that serves, and says how much CPU time it has used each
// time it reads a line.
type child struct {
	addr string
	in   io.Writer
	out  *bufio.Reader
	http http.Client
}

func startChild(b *testing.B, kind, upstream string) *child {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+kind, childEnv+"_UPSTREAM="+upstream)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	c := &child{in: in, out: bufio.NewReader(out)}
	transport := &http.Transport{MaxIdleConnsPerHost: cpuConns}
	c.http.Transport = transport
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = in.Close() // the child ends with its input
		_ = cmd.Wait()
	})
	c.addr = c.line(b)
	return c
}

func (c *child) line(b *testing.B) string {
	b.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(s)
}

// cpu returns the user and system time that the process has used.
func (c *child) cpu(b *testing.B) time.Duration {
	b.Helper()
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		b.Fatal(err)
	}
	n, err := strconv.ParseInt(c.line(b), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(n)
}

// measure returns the CPU time of a request in microseconds.
func (c *child) measure(b *testing.B) float64 {
	b.Helper()
	before := c.cpu(b)
	requests := int(cpuRound.Seconds() * cpuRate)
	begin := time.Now()
	var wg sync.WaitGroup
	for conn := range cpuConns {
		wg.Go(func() {
			for i := conn; i < requests; i += cpuConns {
				time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / cpuRate)))
				if err := c.request(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64((c.cpu(b) - before).Microseconds()) / float64(requests)
}

func (c *child) request() error {
	r, err := http.NewRequest("GET", "http://"+c.addr+"/v1/charges/7", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Rpc-Caller", "checkout")
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
		return fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	return nil
}

// serveChild serves until the input ends.
func serveChild(kind, upstream string) error {
	h, err := childHandler(kind, upstream)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := proxy.Server(h, nil)
	go func() { _ = srv.Serve(l) }() // always ErrServerClosed
	fmt.Println(l.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			return err
		}
		fmt.Println(u.Utime.Nano() + u.Stime.Nano())
	}
	return srv.Close()
}

func childHandler(kind, upstream string) (http.Handler, error) {
	switch kind {
	case "upstream":
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }), nil
	case "bare":
		return bareProxy(upstream)
	case "sidecar":
		return limitedProxy(upstream)
	}
	return nil, fmt.Errorf("unknown child %q", kind)
}

// bareProxy is what a Go programmer who knows the three settings would write.
func bareProxy(upstream string) (http.Handler, error) {
	target, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(target)
			pr.SetXForwarded()
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: new(slicePool),
	}, nil
}

type slicePool struct{ pool sync.Pool }

func (p *slicePool) Get() []byte {
	if b, ok := p.pool.Get().(*[32 << 10]byte); ok {
		return b[:]
	}
	return make([]byte, 32<<10)
}

func (p *slicePool) Put(b []byte) { p.pool.Put((*[32 << 10]byte)(b)) }

// limitedProxy is a sidecar whose service has ten buckets, of which three
// match, none of them over its limit.
func limitedProxy(upstream string) (http.Handler, error) {
	service := limiter.Service{Name: "payments", Routes: []string{"GET /v1/charges/{id}", "POST /v1/charges"}}
	for _, m := range []limiter.Match{
		{Caller: "checkout", Procedure: "GET /v1/charges/{id}"},
		{Caller: "checkout"},
		{},
		{Caller: "a"},
		{Caller: "b"},
		{Caller: "c"},
		{Caller: "d"},
		{Caller: "e"},
		{Caller: "f"},
		{Caller: "g"},
	} {
		service.Buckets = append(service.Buckets, limiter.Bucket{
			Name: fmt.Sprint("b", len(service.Buckets)), Match: m, LimitRPS: 1e6, Behavior: limiter.Deny,
		})
	}
	l := limiter.New(limiter.Options{})
	if err := l.Install(limiter.Configuration{Revision: 1, Services: []limiter.Service{service}}); err != nil {
		return nil, err
	}
	for c := range l.Cells() {
		c.SetRatio(0)
	}
	id, err := httplimit.NewIdentity(httplimit.IdentityConfig{Headers: []string{"rpc-caller", "x-grl-caller"}})
	if err != nil {
		return nil, err
	}
	return proxy.NewInbound("payments", upstream, proxy.Options{Limiter: l, Identity: id})
}
