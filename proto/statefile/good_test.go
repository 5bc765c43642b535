package statefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// node keeps what it holds in a real directory, in virtual time.
type node struct {
	t    *testing.T
	dir  string
	log  bytes.Buffer
	mu   sync.Mutex // guards held
	held *limiter.Configuration
	stop func()
}

func newNode(t *testing.T) *node { return &node{t: t, dir: filepath.Join(t.TempDir(), "state")} }

func (n *node) start() {
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	n.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		NewGood(n.dir, "client", "z1").Keep(ctx, slog.New(slog.NewTextHandler(&n.log, nil)), func() State {
			n.mu.Lock()
			defer n.mu.Unlock()
			return State{Configuration: n.held}
		})
	}()
}

// hold has the node hold a version for d.
func (n *node) hold(v limiter.Version, d time.Duration) {
	n.mu.Lock()
	n.held = &limiter.Configuration{Epoch: v.Epoch, Revision: v.Revision, Serial: v.Serial}
	n.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
}

// loads returns the revisions and serials offered to a node that refuses all
// but the last.
func (n *node) loads(refuse int) (offered []string, err error) {
	err = NewGood(n.dir, "client", "z1").Load(func(s State) error {
		v := s.Configuration.Version()
		offered = append(offered, fmt.Sprintf("%d.%d.%d", v.Epoch, v.Revision, v.Serial))
		if len(offered) <= refuse {
			return errors.New("refused")
		}
		return nil
	})
	return offered, err
}

func (n *node) want(what string, refuse int, want ...string) {
	n.t.Helper()
	if got, err := n.loads(refuse); fmt.Sprint(got) != fmt.Sprint(want) || (err != nil) != (refuse > 0) {
		n.t.Errorf("%s: offered %v, %v, want %v", what, got, err, want)
	}
}

// Fault 36: what did not serve for a minute is not begun with again.
func TestGoodIsWhatServedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.want("before anything", 0)
		n.start()
		n.hold(limiter.Version{Epoch: 1, Revision: 1}, 62*time.Second)
		n.want("after a minute", 0, "1.1.0")
		n.hold(limiter.Version{Epoch: 1, Revision: 2}, 59*time.Second)
		n.want("just before the next is good", 0, "1.1.0")
		n.hold(limiter.Version{Epoch: 1, Revision: 3}, 59*time.Second)
		n.stop()
		n.want("after a process that ended too soon", 0, "1.1.0")
		n.start()
		n.hold(limiter.Version{Epoch: 1, Revision: 3}, 30*time.Second)
		n.want("time before a restart does not count", 0, "1.1.0")
		time.Sleep(32 * time.Second)
		n.want("good", 0, "1.3.0")
		n.stop()
	})
}

func TestGoodKeepsFiveRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		for revision := range uint64(8) {
			n.hold(limiter.Version{Epoch: 1, Revision: revision + 9}, 62*time.Second)
		}
		n.want("eight revisions", 4, "1.16.0", "1.15.0", "1.14.0", "1.13.0", "1.12.0")
		n.hold(limiter.Version{Epoch: 1, Revision: 16, Serial: 1}, 62*time.Second)
		n.want("a cap", 4, "1.16.1", "1.15.0", "1.14.0", "1.13.0", "1.12.0")
		n.hold(limiter.Version{Epoch: 2, Revision: 16, Serial: 1}, 62*time.Second)
		n.want("a controller that restarted", 4, "2.16.1", "1.15.0", "1.14.0", "1.13.0", "1.12.0")
		n.stop()
		if files, err := os.ReadDir(filepath.Join(n.dir, "client.good")); err != nil || len(files) != 5 {
			t.Errorf("files %v, %v, want five", files, err)
		}
	})
}

func TestGoodPassesOverWhatIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		for revision := range uint64(3) {
			n.hold(limiter.Version{Epoch: 1, Revision: revision + 1}, 62*time.Second)
		}
		n.stop()
		dir := filepath.Join(n.dir, "client.good")
		name := func(revision int) string { return filepath.Join(dir, fmt.Sprintf("%016x-%016x", 1, revision)) }
		if err := os.Truncate(name(3), 30); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		offered, err := n.loads(0)
		if fmt.Sprint(offered) != "[1.2.0]" || err == nil || !strings.Contains(err.Error(), name(3)) {
			t.Errorf("offered %v, error %v; want the next older, and what was damaged", offered, err)
		}
		other := NewGood(n.dir, "client", "z2")
		if err := other.Load(func(State) error { t.Error("took that of another node"); return nil }); err == nil {
			t.Error("no error for files of another node")
		}
	})
}

// A disk that is full is tried again, and logged once a minute.
func TestGoodWhereNothingCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		if err := os.WriteFile(n.dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.hold(limiter.Version{Epoch: 1, Revision: 1}, 3*time.Minute+30*time.Second)
		if got := strings.Count(n.log.String(), "cannot keep good configuration"); got != 3 {
			t.Errorf("logged %d times in three minutes and a half, want 3:\n%s", got, n.log.String())
		}
		if err := os.Remove(n.dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		n.want("when it can be written", 0, "1.1.0")
		n.stop()
	})
}

// A restored configuration is good already: it is not written again.
func TestGoodIsNotWrittenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		n.hold(limiter.Version{Epoch: 1, Revision: 1}, 62*time.Second)
		n.stop()
		g := NewGood(n.dir, "client", "z1")
		var held *limiter.Configuration
		if err := g.Load(func(s State) error { held = s.Configuration; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, later := range []time.Duration{0, 2 * GoodAfter} {
			if g.due(time.Now().Add(later), held) {
				t.Errorf("due %v after the restart", later)
			}
		}
	})
}

// capped returns a configuration with a cap that has so long left now.
func capped(left time.Duration) *limiter.Configuration {
	return &limiter.Configuration{Epoch: 1, Revision: 1, Caps: []limiter.Cap{{ID: "1", Service: "pay", Block: true, Ends: time.Now().Add(left)}}}
}

// Caps end by wall time while the node is down.
func TestCapsAgeOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(t.TempDir(), "client", "z1")
		if err := f.Save(State{Configuration: capped(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []time.Duration{40 * time.Minute, 20 * time.Minute, 0, -20 * time.Minute} {
			time.Sleep(20 * time.Minute)
			s, err := f.Load()
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(s.Configuration.Caps[0].Ends); left != want {
				t.Errorf("%v left, want %v", left, want)
			}
		}
	})
}

// Whatever the clock does, or the file says, no cap has more left than it had,
// nor than the longest one.
func TestCapsOfAClockThatJumped(t *testing.T) {
	tests := []struct {
		name    string
		written time.Duration // of now
		left    time.Duration // then
		want    time.Duration
	}{
		{"gone back", 3 * time.Hour, time.Hour, time.Hour},
		{"gone forward by years", -10 * 365 * 24 * time.Hour, time.Hour, -25 * time.Hour},
		{"too long", 0, 1000 * time.Hour, 24 * time.Hour},
		{"too long and gone back", 5 * time.Hour, 1000 * time.Hour, 24 * time.Hour},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			m := wire.FromConfiguration(capped(tt.left))
			content, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			records := appendRecord(nil, recordNode, []byte("client z1"))
			records = appendRecord(records, recordTime, binary.AppendVarint(nil, time.Now().Add(tt.written).UnixMilli()))
			s, err := New("", "client", "z1").decode(sealed(format, appendRecord(records, recordConfiguration, content)))
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(s.Configuration.Caps[0].Ends); left != tt.want {
				t.Errorf("%s: %v left, want %v", tt.name, left, tt.want)
			}
		})
	}
}

func TestReadsTheFormatWithoutTimes(t *testing.T) {
	content, err := proto.Marshal(&grlv1.Configuration{Epoch: 1, Revision: 4})
	if err != nil {
		t.Fatal(err)
	}
	records := appendRecord(appendRecord(nil, recordNode, []byte("client z1")), recordConfiguration, content)
	s, err := New("", "client", "z1").decode(sealed(untimed, records))
	if err != nil || s.Configuration.Revision != 4 {
		t.Errorf("decode = %+v, %v, want r4", s, err)
	}
	caps, err := proto.Marshal(wire.FromConfiguration(capped(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	records = appendRecord(appendRecord(nil, recordNode, []byte("client z1")), recordConfiguration, caps)
	if _, err := New("", "client", "z1").decode(sealed(untimed, records)); err == nil || !strings.Contains(err.Error(), "caps without a time") {
		t.Errorf("decode of caps without a time: %v", err)
	}
}
