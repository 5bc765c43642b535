package repository

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"grl/limiter/limitsfile"
)

// kills is how often TestKilledInACommit kills.
var kills = flag.Int("kills", 200, "how often the test of commits kills; 40 with -short")

// victimVariable makes the test binary the process that is killed, in a directory.
const victimVariable = "GRL_REPOSITORY_VICTIM"

// A state of the tests has the same number in several files: one commit changes
// them all.
func numbered(n int) map[string]string {
	files := map[string]string{"shop.yaml": limits("shop", n), "team/cart.yaml": limits("cart", n), "odd.yaml": limits("odd", n)}
	if n%2 == 0 {
		files["odd.yaml"] = "" // comes and goes
	}
	return files
}

// number returns that of files, or what is wrong with them.
func number(list []limitsfile.Source) (int, error) {
	services, err := limitsfile.Load(list)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, s := range services {
		switch own := int(s.Buckets[0].LimitRPS); {
		case n == 0:
			n = own
		case own != n:
			return 0, fmt.Errorf("%s has %d, the others %d", s.Name, own, n)
		}
	}
	if want := 2 + n%2; n > 0 && len(services) != want {
		return 0, fmt.Errorf("%d files of number %d, want %d", len(services), n, want)
	}
	return n, nil
}

// beVictim counts up in a repository until it is killed, and prints each number
// that it committed.
func beVictim(dir string) {
	ctx := context.Background()
	fail := func(err error) {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	r, err := Open(ctx, Options{Path: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fail(err)
	}
	for {
		v, err := r.Fetch(ctx)
		if err != nil {
			fail(err)
		}
		list, err := r.Files(ctx, v)
		if err != nil {
			fail(err)
		}
		n, err := number(list)
		if err != nil {
			fail(err)
		}
		fmt.Println("sees", n)
		if _, err := r.Commit(ctx, v, changes(numbered(n+1)), robot, "rlc"); err != nil {
			fail(err)
		}
		fmt.Println("wrote", n+1)
	}
}

// TestKilledInACommit kills a process with kill -9 at random points of a cycle:
// the files are always those of one commit, nothing acknowledged is lost, nothing
// of people either, and the next process goes on.
func TestKilledInACommit(t *testing.T) {
	t.Parallel()
	rounds := *kills
	if testing.Short() {
		rounds = min(rounds, 40)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	tests := []struct {
		name    string
		rounds  int
		prepare func(t *testing.T) string
	}{
		{"with a remote", rounds, func(t *testing.T) string { return clone(t, emptyRemote(t)) }},
		{"without a remote", rounds / 2, func(t *testing.T) string { return alone(t) }},
		{"plain directory", rounds / 2, func(t *testing.T) string { return t.TempDir() }},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := killer{t: t, dir: tt.prepare(t), random: rand.New(rand.NewPCG(seed, uint64(i))), cycle: 50 * time.Millisecond}
			writeText(t, filepath.Join(k.dir, "mine.txt"), "by hand\n")
			for range tt.rounds {
				k.round()
				if t.Failed() {
					t.Fatalf("in the round that ends at %d", k.last)
				}
			}
			t.Logf("%d kills, %d commits, the marker was there after %d, a lock after %d, a cycle takes %v", tt.rounds, k.last, k.marked, k.locked, k.cycle)
			if k.marked == 0 {
				t.Error("no kill came in the middle of a change")
			}
		})
	}
}

type killer struct {
	t      *testing.T
	dir    string
	random *rand.Rand
	cycle  time.Duration // how long one takes, as seen so far
	last   int           // the number that was acknowledged last

	marked, locked int // how often those were left
}

// round runs a process, kills it within about a cycle and a half, and looks.
func (k *killer) round() {
	k.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+k.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	k.take(lines) // it has begun
	began := time.Now()
	kill := time.AfterFunc(time.Duration(k.random.Int64N(int64(k.cycle*3/2))), func() { _ = cmd.Process.Kill() })
	for commits := 0; k.take(lines); commits++ {
		k.cycle = (k.cycle*7 + time.Since(began)/time.Duration(commits/2+1)) / 8
	}
	kill.Stop()
	_ = cmd.Wait() // killed
	k.look()
}

// take reads a line of the process, and reports whether there was one.
func (k *killer) take(lines *bufio.Reader) bool {
	k.t.Helper()
	line, err := lines.ReadString('\n')
	if err == io.EOF {
		return false
	}
	what, n, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, bad := strconv.Atoi(n)
	if err != nil || bad != nil || number < k.last || what == "wrote" && number != k.last && number != k.last+1 {
		k.t.Errorf("the process says %q, %v, after %d was acknowledged", line, err, k.last)
		return false
	}
	k.last = number
	return true
}

// look checks what the process left, and goes on from it.
func (k *killer) look() {
	k.t.Helper()
	for _, name := range []string{".git/grl/marker", journalName} {
		if _, err := os.Lstat(filepath.Join(k.dir, name)); err == nil {
			k.marked++
		}
	}
	for _, name := range []string{".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/main.lock", ".git/refs/remotes/origin/main.lock"} {
		if _, err := os.Lstat(filepath.Join(k.dir, name)); err == nil {
			k.locked++
		}
	}
	r, err := Open(k.t.Context(), Options{Path: k.dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		k.t.Fatalf("Open after a kill: %v", err)
	}
	defer func() { _ = r.Close() }()
	v, err := r.Fetch(k.t.Context())
	if err != nil {
		k.t.Fatalf("Fetch after a kill: %v", err)
	}
	list, err := r.Files(k.t.Context(), v)
	if err != nil {
		k.t.Fatalf("Files after a kill: %v", err)
	}
	n, err := number(list)
	if err != nil || n != k.last && n != k.last+1 {
		k.t.Fatalf("after a kill the files are of number %d, %v, want %d or one more", n, err, k.last)
	}
	k.last = n
	shown, err := limitsfile.ReadDir(k.dir)
	if err != nil {
		k.t.Fatal(err)
	}
	if at, err := number(shown); err != nil || at != n {
		k.t.Fatalf("after a kill the work tree is of number %d, %v, want %d", at, err, n)
	}
	if got := text(k.t, filepath.Join(k.dir, "mine.txt")); got != "by hand\n" {
		k.t.Fatalf("the file of a person became %q", got)
	}
	if r.git != nil {
		if status := person(k.t, k.dir, "status", "--porcelain", "--untracked-files=all"); status != "?? mine.txt" {
			k.t.Fatalf("git status after a kill: %q", status)
		}
		person(k.t, k.dir, "fsck", "--no-dangling")
	}
}
