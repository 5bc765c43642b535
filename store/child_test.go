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
	"strconv"
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

// crashWrites is what makes the counter a number.
func crashWrites(number uint64) []Write {
	return []Write{
		record("counter", fmt.Sprint(number)),
		record(fmt.Sprint("filler/", number), strings.Repeat(fmt.Sprint(number, " "), 4000)),
	}
}

// readCounter returns the counter and its version.
func readCounter(ctx context.Context, s *Store) (number, version uint64, err error) {
	records, err := s.Get(ctx, "counter")
	if err != nil || records[0].Version == 0 {
		return 0, 0, err
	}
	number, err = strconv.ParseUint(string(records[0].Value), 10, 64)
	return number, records[0].Version, err
}

// count raises the counter to a number, from the one before.
func count(ctx context.Context, s *Store, number uint64) error {
	_, version, err := readCounter(ctx, s)
	if err != nil {
		return err
	}
	return s.Commit(ctx, []Condition{{"counter", version}}, crashWrites(number))
}

// writeForever makes records and minutes, and prints each once it is
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
	last, _, err := readCounter(ctx, s)
	if err != nil {
		return err
	}
	for number := last + 1; ; number++ {
		if err := count(ctx, s, number); err != nil {
			return err
		}
		fmt.Println("counter", number)
		if err := s.AppendMinute(ctx, at(0), []Sample{{Cell: reads, Zone: "z", Offered: 1, Admitted: 1}}); err != nil {
			return err
		}
		fmt.Println("minute", 1)
	}
}

// acked is what children acknowledged in all.
type acked struct{ counter, minutes uint64 }

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
		case "counter":
			a.counter = number
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
	if all.counter < kills/2 {
		t.Errorf("only %d commits were acknowledged in %d runs", all.counter, kills)
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
	counter, _, err := readCounter(t.Context(), s)
	if err != nil || counter != all.counter && counter != all.counter+1 {
		t.Errorf("counter is %d, %v, acknowledged %d", counter, err, all.counter)
	}
	for number := uint64(1); number <= counter; number++ {
		w := crashWrites(number)[1]
		wantValue(t, s, w.Key, string(w.Value))
	}
	var offered uint64
	if minutes := mustMinutes(t, s, reads, at(0), at(1)); len(minutes) == 1 {
		offered = minutes[0].Offered
	}
	if offered != all.minutes && offered != all.minutes+1 {
		t.Errorf("%d requests counted, acknowledged %d", offered, all.minutes)
	}
	all.counter, all.minutes = counter, offered
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
	wantValue(t, s, "counter", "2")
}

// surviveBadDisk makes every write beyond the present end of the log fail with
// EFBIG, which SQLite takes for an I/O error as it does EIO.
func surviveBadDisk(dir string) error {
	ctx := context.Background()
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	if err := count(ctx, s, 1); err != nil {
		return err
	}
	if err := limitFiles(16 << 10); err != nil {
		return err
	}
	for range 2 {
		err = count(ctx, s, 2)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) {
			return fmt.Errorf("commit on a bad disk: %w, want ErrUnavailable", err)
		}
		if !s.config.suspect.Load() {
			return errors.New("the file is still trusted")
		}
	}
	if counter, _, err := readCounter(ctx, s); err != nil || counter != 1 {
		return fmt.Errorf("counter is %d, %w, want 1", counter, err)
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	if err := count(ctx, s, 2); err != nil {
		return fmt.Errorf("commit after the disk recovered: %w", err)
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
