package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"grl/limiter/limitsfile"
)

// partMark begins the name of a file that is not written to its end.
const partMark = ".grl-part-"

// directoryVersion hashes all limits files below a directory.
func directoryVersion(dir string) (Version, error) {
	files, err := limitsfile.ReadDir(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %d ", len(f.Name), f.Name, len(f.Data))
		h.Write(f.Data)
	}
	return Version(hex.EncodeToString(h.Sum(nil))), nil
}

// writeDirectory writes files whole: a reader sees the old or the new one.
func writeDirectory(dir string, changes []limitsfile.Source) error {
	for _, f := range changes {
		path, err := below(dir, f.Name)
		if err != nil {
			return err
		}
		if f.Data == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := writeFile(path, f.Data); err != nil {
			return err
		}
	}
	return nil
}

// below returns the path of a file below dir, whether its name says dir or not.
func below(dir, name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q is not below %s", name, dir)
	}
	return filepath.Join(dir, rel), nil
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), partMark)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// recoverDirectory removes what a killed process left half written.
func recoverDirectory(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(d.Name(), partMark) {
			err = os.Remove(path)
		}
		return err
	})
}
