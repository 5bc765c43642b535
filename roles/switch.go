package roles

import (
	"errors"
	"io/fs"
	"os"

	"grl/roles/client"
)

// SwitchFile returns the kill switch file of the client on this host, as serve
// with that grl.toml would find it; "" is the one in the working directory, if
// there is one.
func SwitchFile(file string) (string, error) {
	if file == "" {
		if _, err := os.Stat(defaultFile); err == nil {
			file = defaultFile
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	c, err := Load(file, os.Environ(), nil)
	if err != nil {
		return "", err
	}
	return client.SwitchFile(c.Client), nil
}
