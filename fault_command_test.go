package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"time"

	"grl/roles/command/remote"
)

// An ended is a command of grl that ran to its end.
type ended struct {
	code           int
	stdout, stderr string
	began          time.Time
	took           time.Duration
}

// ask runs a command of grl against the controller m and waits for its end.
func (m *member) ask(args ...string) ended {
	m.t.Helper()
	cmd := grl(m.t, m.dir, args...)
	cmd.Env = append(cmd.Env, remote.VariableURL+"="+m.url())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	e := ended{began: time.Now()}
	err := cmd.Run()
	e.took = time.Since(e.began)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("grl %v: %v", args, err)
	}
	e.code, e.stdout, e.stderr = cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	return e
}

// do is ask of a command that must succeed.
func (m *member) do(args ...string) ended {
	m.t.Helper()
	e := m.ask(args...)
	if e.code != 0 {
		m.t.Fatalf("grl %v ended with %d, want 0:\n%s%s", args, e.code, e.stdout, e.stderr)
	}
	return e
}

// read runs a command that prints JSON, into v.
func (m *member) read(v any, args ...string) {
	m.t.Helper()
	e := m.do(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(e.stdout), v); err != nil {
		m.t.Fatalf("output of grl %v: %v:\n%s", args, err, e.stdout)
	}
}

// connect returns the API of the controller m. Each call has a connection of
// its own, so that none is made twice on one that died.
func (m *member) connect() *remote.Conn {
	return remote.Connect(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, m.url())
}
