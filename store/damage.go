package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// errDamaged says that a file holds what was never written.
var errDamaged = errors.New("damaged")

// primaryCode returns the SQLite result code of err without its extension, 0
// if it is none of SQLite's.
func primaryCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// isDamage reports whether the content of a file is to blame for err.
func isDamage(err error) bool {
	if errors.Is(err, errDamaged) {
		return true
	}
	switch primaryCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return true
	}
	return false
}

// isDiskFailure reports whether a write may have reached the disk in part. A
// full disk is none: it refuses a write before anything is synced.
func isDiskFailure(err error) bool { return primaryCode(err) == sqlite3.SQLITE_IOERR }

// classify adds ErrFull or ErrUnavailable to an error of SQLite, and prefers
// the context's own error to the one of the statement it interrupted.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	switch primaryCode(err) {
	case 0:
		return err
	case sqlite3.SQLITE_INTERRUPT:
		if ctx.Err() != nil {
			return ctx.Err()
		}
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// headerSize is the length of the header of an SQLite file in bytes.
const headerSize = 100

// checkHeader returns errDamaged if path does not begin as an SQLite file.
// SQLite itself takes unknown read and write versions for a file it must not
// write, which would look like a read-only disk. Call it before SQLite has the
// file open: closing it would release SQLite's locks.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: shorter than a header", errDamaged)
	} else if err != nil {
		return err
	}
	if !bytes.HasPrefix(header, []byte("SQLite format 3\x00")) {
		return fmt.Errorf("%w: no SQLite file", errDamaged)
	}
	if write, read := header[18], header[19]; write < 1 || write > 2 || read < 1 || read > 2 {
		return fmt.Errorf("%w: file format %d/%d", errDamaged, write, read)
	}
	return nil
}

// quickCheck returns errDamaged if the structure of the file is broken.
func (f *file) quickCheck(ctx context.Context) error {
	var result string
	if err := f.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); primaryCode(err) == sqlite3.SQLITE_ERROR {
		return fmt.Errorf("%w: %w", errDamaged, err) // the statement is right: a format number is unknown
	} else if err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: quick_check: %s", errDamaged, strings.Join(strings.Fields(result), " "))
	}
	return nil
}

// asideMark stands between the name of a file that was set aside and the time.
const asideMark = ".damaged-"

// setAside renames the file with its log and returns the new name, which ends
// in the time. The log keeps its suffix, so that the pair can be examined.
func setAside(path string) (name string, err error) {
	stamp := path + asideMark + time.Now().UTC().Format("20060102T150405")
	aside := stamp
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
		aside = fmt.Sprintf("%s.%d", stamp, i)
	}
	// The log first: without its database it does no harm, but left beside an
	// empty one it would be replayed into it.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return filepath.Base(aside), nil
}

// findAside returns the names that setAside gave to files at path.
func findAside(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, filepath.Base(path)+asideMark) && !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			names = append(names, name)
		}
	}
	return names, nil
}

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the checksum of a row under construction: add its columns in order.
type sum struct{ buf []byte }

func (s sum) int(v int64) sum {
	return sum{binary.BigEndian.AppendUint64(s.buf, uint64(v))}
}

func (s sum) text(v string) sum {
	return sum{append(binary.AppendUvarint(s.buf, uint64(len(v))), v...)}
}

func (s sum) blob(v []byte) sum {
	return sum{append(binary.AppendUvarint(s.buf, uint64(len(v))), v...)}
}

// crc returns what the column sum holds.
func (s sum) crc() int64 { return int64(crc32.Checksum(s.buf, castagnoli)) }
