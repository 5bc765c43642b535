package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockDir takes the lock that keeps a second controller out of dir. It is a
// flock: the kernel lets go of it when the process ends, by kill -9 too, so no
// stale lock file ever stands in the way; and it is none of SQLite's own locks,
// under which two controllers could take turns at writing.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "grl.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w (%s); only one controller may use a store", ErrInUse, holder(f))
	}
	if err == nil {
		err = writeHolder(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unlockDir releases the lock; the file stays, since removing it would let a
// third process lock a new one while a second waits at the old.
func unlockDir(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// writeHolder writes who has the lock, for the message to the next one. A full
// disk must not keep a controller from starting, so only truncation may fail.
func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(f, "process %d\n", os.Getpid())
	return nil
}

func holder(f *os.File) string {
	text := make([]byte, 64)
	n, _ := f.ReadAt(text, 0)
	if who := strings.TrimSpace(string(text[:n])); who != "" {
		return who
	}
	return "process unknown"
}
