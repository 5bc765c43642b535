package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// asGrl makes the test binary behave as grl: the tests below start real
// processes, with the race detector when the tests have it. It does not begin
// with GRL_, which would be a setting.
const asGrl = "RUN_AS_GRL"

// patience bounds what a real process may take; far above what it does take.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asGrl) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// grl returns a command that runs grl in dir.
func grl(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asGrl+"=1")
	return cmd
}

// A process is a grl that serves.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	exited chan struct{} // closed when it ended and its log is complete

	mu    sync.Mutex
	log   []line
	fresh chan struct{} // closed at the next line
}

// A line is a line of the log.
type line struct {
	text  string
	facts map[string]any // nil when it is not JSON
}

// serve starts grl serve and returns when it serves. The process ends with the
// test.
func serve(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := start(t, grl(t, dir, append([]string{"serve", "--log.format", "json"}, args...)...))
	if !p.await("serving") {
		t.Fatalf("grl serve %v ended before it served:\n%s", args, p.text())
	}
	return p
}

// start starts cmd and follows its log.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, exited: make(chan struct{}), fresh: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.add(lines.Text())
		}
		_ = cmd.Wait() // ProcessState has the code
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-p.exited
		if t.Failed() {
			t.Logf("log of grl %v:\n%s", cmd.Args[1:], p.text())
		}
	})
	return p
}

func (p *process) add(text string) {
	l := line{text: text}
	if json.Unmarshal([]byte(text), &l.facts) != nil {
		l.facts = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, l)
	close(p.fresh)
	p.fresh = make(chan struct{})
}

// find returns the first line of the log with that message, and a channel that
// is closed when there is more to look at.
func (p *process) find(message string) (facts map[string]any, fresh chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.log {
		if l.facts["msg"] == message {
			return l.facts, p.fresh
		}
	}
	return nil, p.fresh
}

// await waits for a message in the log, and reports whether it came before the
// process ended.
func (p *process) await(message string) bool {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		facts, fresh := p.find(message)
		if facts != nil {
			return true
		}
		select {
		case <-fresh:
		case <-p.exited:
			facts, _ := p.find(message)
			return facts != nil
		case <-timeout:
			p.t.Fatalf("no %q in the log within %v:\n%s", message, patience, p.text())
		}
	}
}

// address returns what the listener of key is bound to.
func (p *process) address(key string) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.log {
		if l.facts["msg"] == "listening" && l.facts["key"] == key {
			return l.facts["address"].(string)
		}
	}
	p.t.Fatalf("nothing listens for %s", key)
	return ""
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	for _, l := range p.log {
		text.WriteString(l.text + "\n")
	}
	return text.String()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// code waits for the end of the process and returns its exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("still running after %v", patience)
		return 0
	}
}

// get returns the status and the body at url; the status is 0 when nothing
// answers.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := (&http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is not what is asked for
	}}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// eventually asks again and again until ok; a process tells of some changes in
// no other way.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	timeout := time.After(patience)
	for !ok() {
		select {
		case <-again.C:
		case <-timeout:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// serveAll starts all roles in one process, joined over free ports.
func serveAll(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	for range 5 {
		controller, aggregator := freeAddress(t), freeAddress(t)
		p := start(t, grl(t, dir, append([]string{
			"serve", "--role", "all", "--log.format", "json",
			"--controller.listen", controller, "--aggregator.listen", aggregator, "--client.admin", "127.0.0.1:0",
			"--aggregator.controllers", "http://" + controller, "--client.aggregators", "http://" + aggregator,
			"--configurator.listen", "127.0.0.1:0", "--configurator.controller", "http://" + controller,
		}, args...)...))
		if p.await("serving") {
			return p
		}
		if !strings.Contains(p.text(), "is taken") { // someone else was given the port meanwhile
			t.Fatalf("grl serve --role all ended before it served:\n%s", p.text())
		}
	}
	t.Fatal("no free ports")
	return nil
}

// freeAddress returns an address that nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
