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
	fmt.Println("begins 0")
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
		prepare func(t *testing.T) (dir, ann string)
	}{
		{"with a remote", rounds, func(t *testing.T) (dir, ann string) {
			remote := emptyRemote(t)
			return clone(t, remote), clone(t, remote)
		}},
		{"without a remote", rounds / 4, func(t *testing.T) (dir, ann string) { return alone(t), "" }},
		{"plain directory", rounds / 4, func(t *testing.T) (dir, ann string) { return t.TempDir(), "" }},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := killer{t: t, random: rand.New(rand.NewPCG(seed, uint64(i))), first: true}
			k.dir, k.ann = tt.prepare(t)
			writeText(t, filepath.Join(k.dir, "mine.txt"), "by hand\n")
			round := 0
			for ; round < tt.rounds || k.marked == 0 && round < 10*tt.rounds; round++ {
				k.round(round%2 == 0)
				if round%4 == 0 {
					k.push()
				}
				if t.Failed() {
					t.Fatalf("in the round that ends at %d", k.last)
				}
			}
			t.Logf("%d kills, %d commits, the marker was there after %d, a lock after %d, a cycle takes %v", round, k.last, k.marked, k.locked, k.cycle)
			if k.marked == 0 {
				t.Error("no kill came in the middle of a change")
			}
		})
	}
}

type killer struct {
	t      *testing.T
	dir    string
	ann    string // the checkout of a person who pushes; "": there is none
	random *rand.Rand
	first  bool
	cycle  time.Duration // how long one takes, with the start
	last   int           // the number that was acknowledged last

	marked, locked int // how often those were left
}

// round runs a process, kills it within about a cycle and a half, or as soon as it
// changes something, and looks.
func (k *killer) round(early bool) {
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
	k.take(lines) // it begins
	began := time.Now()
	dead, stopped := make(chan struct{}), make(chan struct{})
	after, soon := k.delay()
	go func() {
		defer close(stopped)
		if early && k.awaitMarker(dead) {
			after = soon
		}
		select {
		case <-dead:
		case <-time.After(after):
			_ = cmd.Process.Kill()
		}
	}()
	for wrote := false; ; {
		what := k.take(lines)
		if what == "" {
			break
		}
		if what == "wrote" && !wrote {
			wrote, k.cycle = true, time.Since(began)
			if k.first {
				_ = cmd.Process.Kill()
			}
		}
	}
	close(dead)
	<-stopped
	_ = cmd.Wait() // killed
	k.first = false
	k.look()
}

// delay returns after which time a process is killed: within one and a half
// cycles, the first one after one; and within which part of one once it changes
// something.
func (k *killer) delay() (after, soon time.Duration) {
	if k.first {
		return time.Minute, time.Minute
	}
	return time.Duration(k.random.Int64N(int64(k.cycle * 3 / 2))), time.Duration(k.random.Int64N(int64(k.cycle / 8)))
}

// awaitMarker waits until the process changes something, and reports whether it
// does so before it is dead.
func (k *killer) awaitMarker(dead <-chan struct{}) bool {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for k.countMarkers() == 0 {
		select {
		case <-dead:
			return false
		case <-look.C:
		}
	}
	return true
}

func (k *killer) countMarkers() (n int) {
	for _, name := range []string{".git/grl/marker", journalName} {
		if _, err := os.Lstat(filepath.Join(k.dir, name)); err == nil {
			n++
		}
	}
	return n
}

// push has a person push the next number.
func (k *killer) push() {
	if k.ann == "" {
		return
	}
	k.t.Helper()
	person(k.t, k.ann, "fetch", "--quiet", "origin", "main")
	person(k.t, k.ann, "reset", "--quiet", "--hard", "FETCH_HEAD")
	k.last++
	files := numbered(k.last)
	if files["odd.yaml"] == "" {
		delete(files, "odd.yaml")
		person(k.t, k.ann, "rm", "--quiet", "--ignore-unmatch", "odd.yaml")
	}
	edit(k.t, k.ann, files)
}

// take reads a line of the process, and returns what it does; empty: it is dead.
func (k *killer) take(lines *bufio.Reader) string {
	k.t.Helper()
	line, err := lines.ReadString('\n')
	if err == io.EOF {
		return ""
	}
	what, n, _ := strings.Cut(strings.TrimSpace(line), " ")
	if what == "begins" {
		return what
	}
	number, bad := strconv.Atoi(n)
	if err != nil || bad != nil || number < k.last || number > k.last+1 {
		k.t.Errorf("the process says %q, %v, after %d was acknowledged", line, err, k.last)
		return ""
	}
	k.last = number
	return what
}

// look checks what the process left, and goes on from it.
func (k *killer) look() {
	k.t.Helper()
	k.marked += k.countMarkers()
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
		if n%8 == 0 {
			person(k.t, k.dir, "fsck", "--no-dangling")
		}
	}
}
