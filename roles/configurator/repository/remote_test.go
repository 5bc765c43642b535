package repository

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWhichRemote(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare [][]string
		want    string
		err     string
	}{
		{"none", nil, "", ""},
		{"only one", [][]string{{"remote", "add", "up.stream", "/none"}}, "up.stream", ""},
		{"origin of several", [][]string{{"remote", "add", "aa", "/none"}, {"remote", "add", "origin", "/none"}}, "origin", ""},
		{"that of the branch", [][]string{{"remote", "add", "origin", "/none"}, {"config", "branch.main.remote", "aa"}}, "aa", ""},
		{"the branch follows a local one", [][]string{{"config", "branch.main.remote", "."}}, "", ""},
		{"several", [][]string{{"remote", "add", "aa", "/none"}, {"remote", "add", "bb", "/none"}}, "", "has the remotes aa, bb: say which"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := alone(t)
			for _, args := range tt.prepare {
				person(t, dir, args...)
			}
			got, err := open(t, dir).git.remote(t.Context())
			if tt.err != "" {
				checkError(t, "remote", err, tt.err)
			} else if err != nil || got != tt.want {
				t.Errorf("remote = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestRemoteThatRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := filepath.Join(w.remote, "hooks/pre-receive")
	writeText(t, hook, "#!/bin/sh\nprintf 'limits are \\033[31mfrozen\\n' >&2\nexit 1\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	r := open(t, w.dir)
	base := r.fetch()
	_, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
	checkError(t, "Commit", err, "hook declined", "frozen")
	if errors.Is(err, ErrMoved) || err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("Commit = %q", err)
	}
	if head, err := r.Head(t.Context()); err != nil || head != base {
		t.Errorf("Head = %s, %v, want the base", head, err)
	}
	checkClean(t, w.dir)
}

func TestRemoteThatIsAway(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"closed port": "git://" + closed.Addr().String() + "/x", "no such directory": "/none/of/these.git"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := open(t, w.dir)
			base := r.fetch()
			person(t, w.dir, "remote", "set-url", "origin", url)
			if _, err := r.Fetch(t.Context()); err == nil {
				t.Error("Fetch succeeds")
			}
			_, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
			if err == nil || errors.Is(err, ErrMoved) {
				t.Errorf("Commit = %v, want why it cannot push", err)
			}
			checkClean(t, w.dir)
			person(t, w.dir, "remote", "set-url", "origin", w.remote)
			r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)})
			checkClean(t, w.dir)
		})
	}
}

func TestRemoteThatHangs(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hangs.Close() })
	w := newWorld(t)
	r := open(t, w.dir)
	base := r.fetch()
	person(t, w.dir, "remote", "set-url", "origin", "git://"+hangs.Addr().String()+"/x")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Commit(ctx, base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m")
		done <- err
	}()
	if err := hangs.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	conn, err := hangs.Accept() // it is at the push
	if err != nil {
		t.Fatalf("Accept: %v; Commit: %v", err, <-done)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Commit = %v, want context.Canceled", err)
	}
	// Nothing of git is alive that would hold the connection open.
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for buffer := make([]byte, 1<<10); err == nil; {
		_, err = conn.Read(buffer)
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("a git process is left")
	}
	if _, err := os.Stat(r.git.markerFile()); err != nil {
		t.Errorf("no marker of the git that was killed: %v", err)
	}
	person(t, w.dir, "remote", "set-url", "origin", w.remote)
	r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 2)})
	checkClean(t, w.dir)
}

// TestHelpersEndWithGit: what git starts to reach a remote ends with it, and can ask
// nobody.
func TestHelpersEndWithGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	ssh, pipe, args := filepath.Join(dir, "ssh"), filepath.Join(dir, "pipe"), filepath.Join(dir, "args")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writeText(t, ssh, "#!/bin/sh\necho \"$GIT_TERMINAL_PROMPT $@\" >"+args+"\nexec sleep 600 3>"+pipe+"\n")
	if err := os.Chmod(ssh, 0o755); err != nil {
		t.Fatal(err)
	}
	person(t, w.dir, "config", "core.sshCommand", ssh+" -i key")
	person(t, w.dir, "remote", "set-url", "origin", "ssh://host.invalid/limits.git")
	r := open(t, w.dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.Fetch(ctx)
		done <- err
		if end, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = end.Close() // a Fetch that never got so far must not leave the test waiting
		}
	}()
	held, err := os.Open(pipe) // the helper runs
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Fetch = %v, want context.Canceled", err)
	}
	if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("reading what the helper has open: %v, want its end", err)
	}
	if got := text(t, args); !strings.HasPrefix(got, "0 -i key -o BatchMode=yes ") {
		t.Errorf("the helper was started with %q", got)
	}
}

func TestOthersPushInBetween(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"cart.yaml", "shop.yaml"} { // another one, and the same
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := open(t, w.dir)
			base := r.fetch()
			edit(t, w.ann, map[string]string{file: limits(strings.TrimSuffix(file, ".yaml"), 7)})
			theirs := person(t, w.remote, "rev-parse", "main")

			if _, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", 2)}), robot, "m"); !errors.Is(err, ErrMoved) {
				t.Fatalf("Commit = %v, want ErrMoved", err)
			}
			if now := person(t, w.remote, "rev-parse", "main"); now != theirs {
				t.Errorf("the remote is at %s, want %s as before", now, theirs)
			}
			checkClean(t, w.dir)
			if head, err := r.Head(t.Context()); err != nil || head != base {
				t.Errorf("Head = %s, %v, want the base", head, err)
			}
			again := r.fetch()
			if string(again) != theirs {
				t.Errorf("Fetch = %s, want %s", again, theirs)
			}
			want := maps.Clone(r.files(again))
			want["shop.yaml"] = limits("shop", 2)
			r.checkFiles(r.commit(again, map[string]string{"shop.yaml": limits("shop", 2)}), want)
			checkClean(t, w.dir)
		})
	}
}

func TestCommitNeedsTheHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	first := r.fetch()
	r.commit(first, map[string]string{"shop.yaml": limits("shop", 2)})
	if _, err := r.Commit(t.Context(), first, changes(map[string]string{"shop.yaml": limits("shop", 3)}), robot, "m"); !errors.Is(err, ErrMoved) {
		t.Errorf("Commit on an old version = %v, want ErrMoved", err)
	}
}

func TestShallowClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 2)})
	dir := filepath.Join(t.TempDir(), "shallow")
	person(t, ".", "clone", "--quiet", "--depth=1", "file://"+w.remote, dir)
	r := open(t, dir)
	made := r.commit(r.fetch(), map[string]string{"shop.yaml": limits("shop", 3)})
	person(t, w.ann, "pull", "--quiet")
	edit(t, w.ann, map[string]string{"cart.yaml": limits("cart", 4)})
	next := r.fetch()
	if next == made {
		t.Error("Fetch does not take in what was pushed")
	}
	r.checkFiles(next, map[string]string{"shop.yaml": limits("shop", 3), "cart.yaml": limits("cart", 4)})
	r.commit(next, map[string]string{"shop.yaml": limits("shop", 5)})
	checkClean(t, dir)
}
