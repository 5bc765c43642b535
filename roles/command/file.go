package command

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
)

// writeWhole writes a file so that it is there as a whole or not at all, after a
// power cut too.
func writeWhole(path string, data []byte, mode os.FileMode) error {
	temp := filepath.Join(filepath.Dir(path), ".grl-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// removeWhole removes a file, for good after a power cut too. It reports whether
// there was one.
func removeWhole(path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
