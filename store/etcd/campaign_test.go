package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"grl/store"
	"grl/store/etcd"
	"grl/store/storetest"
)

func mustLead(t *testing.T, e store.Engine) store.Leadership {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := e.Campaign(ctx, "decider", "test")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func isLost(l store.Leadership) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

func TestOneLeadsAtATime(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1)
	var leaders, terms atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		e := openPart(t, cluster, "")
		wg.Go(func() {
			for range 5 {
				l, err := e.Campaign(t.Context(), "decider", "test")
				if err != nil {
					t.Error(err)
					return
				}
				if n := leaders.Add(1); n != 1 {
					t.Errorf("%d lead", n)
				}
				if isLost(l) {
					t.Error("a new leadership is lost")
				}
				terms.Add(1)
				leaders.Add(-1)
				if err := l.Resign(t.Context()); err != nil {
					t.Error(err)
				}
				if !isLost(l) {
					t.Error("who resigned has not lost leadership")
				}
			}
		})
	}
	wg.Wait()
	if n := terms.Load(); n != 20 {
		t.Errorf("%d terms, want 20", n)
	}
}

func TestLeadershipLasts(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1)
	first, second := openPart(t, cluster, ""), openPart(t, cluster, "")
	l := mustLead(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // of real time: leases are etcd's
	defer cancel()
	if _, err := second.Campaign(ctx, "decider", "second"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Campaign while another one leads: %v, want DeadlineExceeded", err)
	}
	if isLost(l) {
		t.Error("leadership was lost though nothing happened")
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHandOver lets a leader go without a word: its engine is closed, its lease
// runs out.
func TestHandOver(t *testing.T) {
	cluster := storetest.StartEtcd(t, 3)
	first, err := etcd.Open(t.Context(), etcd.Options{Endpoints: cluster.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	second := openPart(t, cluster, "")
	old := mustLead(t, first)
	won := make(chan store.Leadership)
	go func() {
		l, err := second.Campaign(t.Context(), "decider", "second")
		if err != nil {
			t.Error(err)
		}
		won <- l
	}()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	closed := time.Now()
	l := <-won
	t.Logf("the next one leads %v later", time.Since(closed).Round(time.Millisecond))
	if waited := time.Since(closed); waited > 5*time.Second {
		t.Errorf("the next one leads after %v, want at most 5s", waited)
	}
	if !isLost(old) {
		t.Error("the old leadership is not lost")
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

const childVariable = "GRL_ETCD_TEST_ENDPOINTS"

// runChild leads, and says so again and again for as long as it does.
func runChild() int {
	ctx := context.Background()
	e, err := etcd.Open(ctx, etcd.Options{Endpoints: strings.Split(os.Getenv(childVariable), ",")})
	if err == nil {
		var l store.Leadership
		if l, err = e.Campaign(ctx, "decider", "child"); err == nil {
			for {
				now := time.Now()
				if isLost(l) {
					fmt.Println("lost")
					return 0
				}
				fmt.Println("leads", now.UnixNano())
				time.Sleep(time.Millisecond)
			}
		}
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// TestFrozenLeader stops the process of a leader until another one leads: it
// must not believe to lead for a moment once it goes on.
func TestFrozenLeader(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"="+strings.Join(cluster.Endpoints(), ","))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; n < 500 && lines.Scan(); n++ { // it renewed its lease
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	e := openPart(t, cluster, "")
	frozen := time.Now()
	l := mustLead(t, e)
	led := time.Now()
	t.Logf("the next one leads %v after the leader froze", led.Sub(frozen).Round(time.Millisecond))
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
		var at int64
		if _, err := fmt.Sscanf(last, "leads %d", &at); err == nil && at > led.UnixNano() {
			t.Errorf("the frozen one said that it leads %v after another one did", time.Duration(at-led.UnixNano()))
		}
	}
	if err := child.Wait(); err != nil || last != "lost" {
		t.Errorf("the frozen one ended with %q, %v, want lost", last, err)
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}
