package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"grl/roles/client"
)

// everything is what a switch file says that stops all dropping of the host.
const everything = "all"

// path returns the switch file that the flags mean.
func (f *switchFlags) path() (string, error) {
	switch {
	case f.file != "":
		return f.file, nil
	case f.stateDir != "":
		return client.SwitchFile(client.Config{StateDir: f.stateDir}), nil
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
		return fmt.Errorf("disable: %w", err)
	}
	if service == "" {
		names = []string{everything}
	} else if !slices.Contains(names, everything) && !slices.Contains(names, service) {
		names = append(names, service)
	}
	if err := client.WriteSwitch(path, names...); err != nil {
		return fmt.Errorf("disable: %w", err)
	}
	of := ""
	if !slices.Contains(names, everything) {
		of = " of " + strings.Join(names, ", ")
	}
	_, err = fmt.Fprintf(out, "wrote %s: within a second the client with this switch file drops nothing%s\n", path, of)
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
		return fmt.Errorf("enable: %w", err)
	}
	if service != "" && slices.Contains(names, everything) {
		return fmt.Errorf("enable: %s disables everything: grl enable --all --here", path)
	}
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return service == "" || name == service })
	text := fmt.Sprintf("removed %s: within a second the limits hold on this host again\n", path)
	switch {
	case len(names) == 0:
		text = fmt.Sprintf("there is no %s: nothing was disabled by it\n", path)
	case len(left) > 0:
		err = client.WriteSwitch(path, left...)
		text = fmt.Sprintf("wrote %s: still disabled on this host: %s\n", path, strings.Join(left, ", "))
	default:
		err = client.RemoveSwitch(path)
	}
	if err != nil {
		return fmt.Errorf("enable: %w", err)
	}
	_, err = io.WriteString(out, text)
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
		return nil, err
	}
	names := strings.Fields(string(text))
	if len(names) == 0 || slices.Contains(names, everything) {
		return []string{everything}, nil
	}
	return names, nil
}
