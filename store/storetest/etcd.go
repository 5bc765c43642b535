package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Etcd is a real etcd on loopback.
type Etcd struct {
	nodes []*node
}

// node is one member.
type node struct {
	url     string // for clients
	command []string
	process *exec.Cmd
	log     *bytes.Buffer // what it said; read it after the process ended
}

// StartEtcd starts an etcd of so many nodes with its default limits and these
// arguments, in which {client} stands for the URL of a node. It runs until the
// test ends; StartEtcd waits until it answers. It skips the test if etcd is not
// installed.
func StartEtcd(t testing.TB, nodes int, arguments ...string) *Etcd {
	t.Helper()
	binary, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("etcd is not installed (Debian: etcd-server)")
	}
	e := &Etcd{}
	ports := FreePorts(t, 2*nodes)
	var members []string
	for i := range nodes {
		members = append(members, fmt.Sprintf("n%d=http://127.0.0.1:%d", i, ports[2*i+1]))
	}
	dir := t.TempDir()
	for i := range nodes {
		client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[2*i]), fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1])
		command := []string{
			binary, "--name", fmt.Sprint("n", i), "--data-dir", filepath.Join(dir, fmt.Sprint("n", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-token", filepath.Base(dir),
			"--logger", "zap", "--log-level", "warn",
		}
		for _, a := range arguments {
			command = append(command, strings.ReplaceAll(a, "{client}", client))
		}
		e.nodes = append(e.nodes, &node{url: client, command: command})
	}
	t.Cleanup(func() {
		for i := range e.nodes {
			e.Kill(i)
			if t.Failed() {
				t.Logf("etcd %d said:\n%s", i, tail(e.nodes[i].log.String(), 2000))
			}
		}
	})
	for i := range e.nodes {
		e.Start(t, i)
	}
	for i := range e.nodes {
		e.WaitHealthy(t, i)
	}
	return e
}

// FreePorts returns ports of loopback that nobody listens on.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func tail(text string, n int) string { return text[max(len(text)-n, 0):] }

// Endpoints returns the URLs of all nodes.
func (e *Etcd) Endpoints() []string {
	var urls []string
	for _, n := range e.nodes {
		urls = append(urls, n.url)
	}
	return urls
}

// Start starts a node that does not run.
func (e *Etcd) Start(t testing.TB, i int) {
	t.Helper()
	n := e.nodes[i]
	n.log = new(bytes.Buffer)
	n.process = exec.Command(n.command[0], n.command[1:]...)
	n.process.Stdout, n.process.Stderr = n.log, n.log
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// Kill kills a node with SIGKILL and waits until it is gone.
func (e *Etcd) Kill(i int) {
	if p := e.nodes[i].process; p != nil {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()         // killed
		e.nodes[i].process = nil
	}
}

// WaitHealthy waits until a node answers and knows a leader.
func (e *Etcd) WaitHealthy(t testing.TB, i int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if e.ask(i, "/health", "").Health == "true" {
			return
		}
	}
	t.Fatalf("etcd %d is not healthy after %v", i, patience)
}

// Leader returns which node leads.
func (e *Etcd) Leader(t testing.TB) int {
	t.Helper()
	for i, n := range e.nodes {
		if n.process == nil {
			continue
		}
		if s := e.ask(i, "/v3/maintenance/status", "{}"); s.Leader != "" && s.Leader == s.Header.Member {
			return i
		}
	}
	t.Fatal("no etcd leads")
	return 0
}

// answer is what we want to know of etcd's answers.
type answer struct {
	Health string `json:"health"`
	Leader string `json:"leader"`
	Header struct {
		Member string `json:"member_id"`
	} `json:"header"`
}

// ask sends a request to a node: GET, or POST if there is a body. The answer is
// empty if there is none.
func (e *Etcd) ask(i int, path, body string) answer {
	transport := &http.Transport{DisableKeepAlives: true}
	client := http.Client{Timeout: time.Second, Transport: transport}
	method, content := http.MethodGet, io.Reader(http.NoBody)
	if body != "" {
		method, content = http.MethodPost, strings.NewReader(body)
	}
	var a answer
	req, err := http.NewRequest(method, e.nodes[i].url+path, content)
	if err != nil {
		return a
	}
	response, err := client.Do(req)
	if err != nil {
		return a
	}
	defer response.Body.Close()
	_ = json.NewDecoder(response.Body).Decode(&a) // an answer of another form is none
	return a
}
