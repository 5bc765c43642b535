package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// everything is what a switch file says that stops all dropping of the host.
const everything = "all"

// path returns the switch file that the flags mean.
func (f *switchFlags) path() (string, error) {
	switch {
	case f.file != "":
		return f.file, nil
	case f.stateDir != "":
		return filepath.Join(f.stateDir, "disabled"), nil
	}
	path, err := f.switchFile(f.configFile)
	if err != nil {
		return "", wrongUse(fmt.Errorf("find the switch file: %w", err))
	}
	return path, nil
}

// disableHere adds a service, or everything, to the switch file.
func disableHere(out io.Writer, f *switchFlags, service string) error {
	path, err := f.path()
	if err != nil {
		return err
	}
	names, err := readSwitch(path)
	if err != nil {
		return err
	}
	if service == "" {
		names = []string{everything}
	} else if !slices.Contains(names, everything) && !slices.Contains(names, service) {
		names = append(names, service)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("disable: %w", err)
	}
	// Readable by all: the client may be another user.
	if err := writeWhole(path, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("disable: %w", err)
	}
	_, err = fmt.Fprintf(out, "wrote %s: the client of this host that has this switch file drops nothing of %s\n", path, strings.Join(names, ", "))
	return err
}

// enableHere takes a service out of the switch file, or removes it.
func enableHere(out io.Writer, f *switchFlags, service string) error {
	path, err := f.path()
	if err != nil {
		return err
	}
	names, err := readSwitch(path)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return service == "" || name == service })
	if service != "" && slices.Contains(names, everything) {
		return fmt.Errorf("enable: %s disables everything: grl enable --all --here", path)
	}
	if len(left) > 0 {
		if err := writeWhole(path, []byte(strings.Join(left, "\n")+"\n"), 0o644); err != nil {
			return fmt.Errorf("enable: %w", err)
		}
		_, err = fmt.Fprintf(out, "wrote %s: still disabled on this host: %s\n", path, strings.Join(left, ", "))
		return err
	}
	was, err := removeWhole(path)
	if err != nil {
		return fmt.Errorf("enable: %w", err)
	}
	text := "removed %s: the limits hold on this host again\n"
	if !was {
		text = "there is no %s: nothing was disabled on this host\n"
	}
	_, err = fmt.Fprintf(out, text, path)
	return err
}

// readSwitch returns what a switch file disables; an empty one is everything.
// No file is nothing.
func readSwitch(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read switch file: %w", err)
	}
	names := strings.Fields(string(text))
	if len(names) == 0 || slices.Contains(names, everything) {
		return []string{everything}, nil
	}
	return names, nil
}
