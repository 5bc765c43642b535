package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runChild is what the test binary does as another process; it returns the exit
// code.
func runChild(role string) int {
	dir := os.Getenv("GRL_STORE_TEST_DIR")
	run := map[string]func(string) error{"write": writeForever, "bad disk": surviveBadDisk}[role]
	if err := run(dir); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func startChild(t *testing.T, role, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "GRL_STORE_TEST_CHILD="+role, "GRL_STORE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// crashChange is the change that makes a revision of that number.
func crashChange(number uint64) Change {
	return change("counter", fmt.Sprint(number), "filler", strings.Repeat(fmt.Sprint(number, " "), 4000))
}

// writeForever makes revisions, epochs and minutes, and prints each once it is
// acknowledged.
func writeForever(dir string) error {
	ctx := context.Background()
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	if warnings := s.Warnings(); len(warnings) > 0 {
		return errors.New(strings.Join(warnings, "\n"))
	}
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	for number := head.Number; ; number++ {
		if _, err := s.Apply(ctx, number, crashChange(number+1)); err != nil {
			return err
		}
		fmt.Println("revision", number+1)
		if err := s.AppendMinute(ctx, at(0), []Sample{{Cell: reads, Zone: "z", Offered: 1, Admitted: 1}}); err != nil {
			return err
		}
		fmt.Println("minute", 1)
		epoch, err := s.NextEpoch(ctx, 0)
		if err != nil {
			return err
		}
		fmt.Println("epoch", epoch)
	}
}

// acked is what children acknowledged in all.
type acked struct{ revision, epoch, minutes uint64 }

// read takes what a child prints until it dies, and kills it, some time after
// it acknowledged killAfter things.
func (a *acked) read(t *testing.T, cmd *exec.Cmd, out io.Reader, killAfter int, delay time.Duration) {
	t.Helper()
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		var what string
		var number uint64
		if _, err := fmt.Sscan(lines.Text(), &what, &number); err != nil {
			continue // cut off
		}
		switch what {
		case "revision":
			a.revision = number
		case "epoch":
			a.epoch = number
		case "minute":
			a.minutes++
		}
		if n == killAfter {
			// Real time, to hit any moment of a transaction.
			time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait() // always: killed
}

const kills = 30

func TestKillLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var all acked
	for range kills {
		cmd, out := startChild(t, "write", dir)
		all.read(t, cmd, out, 1+r.IntN(12), time.Duration(r.Int64N(int64(5*time.Millisecond))))
		checkAfterKill(t, dir, &all)
		if t.Failed() {
			return
		}
	}
	if all.revision < kills/2 {
		t.Errorf("only %d revisions were acknowledged in %d runs", all.revision, kills)
	}
}

// checkAfterKill compares the store with what was acknowledged. One more may
// have been committed than was printed, and then counts as acknowledged.
func checkAfterKill(t *testing.T, dir string, all *acked) {
	t.Helper()
	s := openStore(t, dir)
	defer closeStore(t, s)
	if warnings := s.Warnings(); len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	head := mustHead(t, s).Number
	if head != all.revision && head != all.revision+1 {
		t.Errorf("head is r%d, acknowledged r%d", head, all.revision)
	}
	for number := uint64(1); number <= head; number++ {
		wantDocuments(t, s, number, crashChange(number))
	}
	var offered uint64
	if minutes := mustMinutes(t, s, reads, at(0), at(1)); len(minutes) == 1 {
		offered = minutes[0].Offered
	}
	if offered != all.minutes && offered != all.minutes+1 {
		t.Errorf("%d requests counted, acknowledged %d", offered, all.minutes)
	}
	epoch, err := readEpoch(t.Context(), s.config.read)
	if err != nil || epoch != all.epoch && epoch != all.epoch+1 {
		t.Errorf("epoch %d, %v, acknowledged %d", epoch, err, all.epoch)
	}
	all.revision, all.minutes, all.epoch = head, offered, epoch
	for _, f := range []*file{s.config, s.history} {
		var result string
		if err := f.read.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
			t.Errorf("integrity_check: %s, %v", result, err)
		}
	}
}

// TestBadDiskIsReopened runs in a process of its own, since it limits the size
// of files.
func TestBadDiskIsReopened(t *testing.T) {
	dir := t.TempDir()
	cmd, out := startChild(t, "bad disk", dir)
	said, err := io.ReadAll(out)
	if waitErr := cmd.Wait(); err != nil || waitErr != nil {
		t.Fatalf("child: %v, %v", err, waitErr)
	}
	if string(said) != "survived\n" {
		t.Errorf("child said %q", said)
	}
	s := openStore(t, dir)
	wantDocuments(t, s, mustHead(t, s).Number, crashChange(2))
}

// surviveBadDisk makes every write beyond the present end of the log fail with
// EFBIG, which SQLite takes for an I/O error as it does EIO.
func surviveBadDisk(dir string) error {
	ctx := context.Background()
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	if _, err := s.Apply(ctx, 0, crashChange(1)); err != nil {
		return err
	}
	if err := limitFiles(16 << 10); err != nil {
		return err
	}
	for range 2 {
		_, err = s.Apply(ctx, 1, crashChange(2))
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) {
			return fmt.Errorf("apply on a bad disk: %w, want ErrUnavailable", err)
		}
		if !s.config.suspect.Load() {
			return errors.New("the file is still trusted")
		}
	}
	if head, err := s.Head(ctx); err != nil || head.Number != 1 {
		return fmt.Errorf("head is r%d, %w, want r1", head.Number, err)
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	if _, err := s.Apply(ctx, 1, crashChange(2)); err != nil {
		return fmt.Errorf("apply after the disk recovered: %w", err)
	}
	if s.config.suspect.Load() {
		return errors.New("the file is not trusted again")
	}
	fmt.Println("survived")
	return s.Close()
}

func limitFiles(bytes uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: 1 << 40})
}
