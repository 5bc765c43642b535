package limitsfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grl/limiter/yamlfile"
)

// Source is a limits file as it was read.
type Source struct {
	Name string // path, for errors
	Data []byte
}

// Hash returns the SHA-256 of the data in hexadecimal digits.
func (s Source) Hash() string {
	sum := sha256.Sum256(s.Data)
	return hex.EncodeToString(sum[:])
}

// ReadDir reads the files *.yaml and *.yml below dir, sorted by path. Hidden
// files and directories (a dot in front) are skipped, symbolic links are
// followed, and each file is read once however many links lead to it: so a
// mounted Kubernetes ConfigMap reads as what its links show. When the tree
// changes while it is read, as by the swap of such a mount, it is read again.
// What cannot be read is reported in an Errors; a dir that does not exist is
// fs.ErrNotExist.
func ReadDir(dir string) ([]Source, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	const attempts = 5
	for range attempts {
		files, errs := list(dir)
		sources, more := readAll(files)
		errs = append(errs, more...)
		if again, _ := list(dir); !slices.Equal(files, again) {
			continue
		}
		if len(errs) > 0 {
			return nil, errs.Sorted()
		}
		return sources, nil
	}
	return nil, Errors{{File: dir, Problem: "changes all the time while it is read"}}
}

// IsLimits reports whether ReadDir reads a file of that path, slash-separated and
// relative to its directory: *.yaml and *.yml that are not hidden and do not lie in
// a hidden directory.
func IsLimits(path string) bool {
	return hasExtension(path) && !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.")
}

func hasExtension(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// Size is how large a limits file is.
type Size struct {
	Name  string // path, for errors
	Bytes int64
}

// CheckSizes holds files that are not read yet to the bounds of ReadDir, on one
// file and on all of them in this order. The error is an Errors.
func CheckSizes(files []Size) error {
	var errs Errors
	total := int64(0)
	for _, f := range files {
		if f.Bytes > MaxFileBytes {
			errs = append(errs, tooLarge(f.Name, f.Bytes))
			continue
		}
		if total += f.Bytes; total > MaxTotalBytes {
			errs = append(errs, tooMuch(f.Name))
			break
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs.Sorted()
}

func tooLarge(name string, size int64) *Error {
	return &Error{File: name, Found: yamlfile.BytesText(int(min(size, 1<<40))), Expected: "at most 16 MiB"}
}

// tooMuch is the error of the file whose data is more than all may have together.
func tooMuch(name string) *Error {
	return &Error{File: name, Found: "more than 64 MiB in all files up to this one", Expected: "at most 64 MiB"}
}

// ReadFile reads one limits file.
func ReadFile(name string) (Source, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return Source{}, Errors{{File: name, Problem: "cannot be read: " + cause(err)}}
	case !info.Mode().IsRegular():
		return Source{}, Errors{{File: name, Found: "a " + fileKind(info.Mode()), Expected: "a file"}}
	case info.Size() > MaxFileBytes:
		return Source{}, Errors{tooLarge(name, info.Size())}
	}
	f, err := os.Open(name)
	if err != nil {
		return Source{}, Errors{{File: name, Problem: "cannot be read: " + cause(err)}}
	}
	defer f.Close()
	// It may grow meanwhile; one byte more than allowed is refused by Parse.
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return Source{}, Errors{{File: name, Problem: "cannot be read: " + cause(err)}}
	}
	return Source{name, data}, nil
}

// found is a limits file of a directory: its name there, and the file that
// this stands for.
type found struct{ name, real string }

func list(dir string) ([]found, Errors) {
	l := lister{seen: map[string]bool{}}
	l.dir(dir)
	slices.SortFunc(l.files, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return l.files, l.errs
}

// lister walks a directory.
type lister struct {
	seen  map[string]bool // real paths of files and directories
	files []found
	errs  Errors
}

func (l *lister) fail(name string, err error) {
	l.errs = append(l.errs, &Error{File: name, Problem: "cannot be read: " + cause(err)})
}

func (l *lister) dir(name string) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		l.fail(name, err)
		return
	}
	if l.seen[real] {
		return // a link back to where we came from, or a second one
	}
	l.seen[real] = true
	entries, err := os.ReadDir(name)
	if err != nil {
		l.fail(name, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			l.entry(filepath.Join(name, e.Name()), e)
		}
	}
}

func (l *lister) entry(name string, e fs.DirEntry) {
	isLimits := hasExtension(name)
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(name)
		if err != nil {
			if isLimits {
				l.fail(name, err)
			}
			return
		}
		mode = info.Mode()
	}
	if mode.IsDir() {
		l.dir(name)
		return
	}
	if !isLimits {
		return
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		l.fail(name, err)
		return
	}
	if !l.seen[real] {
		l.seen[real] = true
		l.files = append(l.files, found{name, real})
	}
}

func readAll(files []found) (sources []Source, errs Errors) {
	total := 0
	for _, f := range files {
		s, err := ReadFile(f.name)
		if bad := Errors(nil); errors.As(err, &bad) {
			errs = append(errs, bad...)
			continue
		}
		if total += len(s.Data); total > MaxTotalBytes {
			return nil, append(errs, tooMuch(f.name))
		}
		sources = append(sources, s)
	}
	return sources, errs
}

// cause returns err without the path, which the error says anyway.
func cause(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}
