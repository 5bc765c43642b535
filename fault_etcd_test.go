package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// An etcd is one node of a real etcd.
type etcd struct {
	*process
	t      *testing.T
	name   string
	client string // URL that controllers use
	peer   string // URL that the other nodes use
	args   []string
}

// addEtcd names an etcd of so many nodes, which f.start does not start: it must
// serve before the controllers.
func (f *fleet) addEtcd(nodes int) {
	var cluster []string
	for i := range nodes {
		e := &etcd{t: f.t, name: fmt.Sprintf("etcd-%d", i), client: "http://" + f.address(), peer: "http://" + f.address()}
		f.etcds = append(f.etcds, e)
		cluster = append(cluster, e.name+"="+e.peer)
	}
	for _, e := range f.etcds {
		e.args = []string{
			"--name", e.name, "--data-dir", f.t.TempDir(), "--log-level", "error", "--logger", "zap",
			"--listen-client-urls", e.client, "--advertise-client-urls", e.client,
			"--listen-peer-urls", e.peer, "--initial-advertise-peer-urls", e.peer,
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-token", f.t.Name(),
		}
	}
}

// etcdURLs returns what controller.etcd is.
func (f *fleet) etcdURLs() string {
	var urls []string
	for _, e := range f.etcds {
		urls = append(urls, e.client)
	}
	return strings.Join(urls, ",")
}

// startEtcd starts the nodes and waits until all answer.
func (f *fleet) startEtcd() {
	f.t.Helper()
	if len(f.etcds) == 0 {
		return
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		f.t.Fatalf("a real etcd is needed, of Debian's etcd-server: %v", err)
	}
	for _, e := range f.etcds {
		e.process = start(f.t, exec.CommandContext(f.t.Context(), "etcd", e.args...))
	}
	for _, e := range f.etcds {
		eventually(f.t, e.name+" is healthy", func() bool {
			_, body := get(f.t, e.client+"/health")
			return strings.Contains(body, `"true"`)
		})
	}
}

// kill ends the node as kill -9 does.
func (e *etcd) kill() {
	e.t.Helper()
	e.signal(syscall.SIGKILL)
	<-e.exited
}

// etcdLeader returns the node that leads the others.
func (f *fleet) etcdLeader() *etcd {
	f.t.Helper()
	for _, e := range f.etcds {
		var status struct {
			Header struct {
				Member string `json:"member_id"`
			}
			Leader string
		}
		response, err := http.Post(e.client+"/v3/maintenance/status", "application/json", bytes.NewBufferString("{}"))
		if err != nil {
			f.t.Fatal(err)
		}
		err = json.NewDecoder(response.Body).Decode(&status)
		response.Body.Close()
		if err != nil {
			f.t.Fatal(err)
		}
		if status.Leader == status.Header.Member {
			return e
		}
	}
	f.t.Fatal("no etcd leads")
	return nil
}
