package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"grl/limiter"
)

const (
	// hostSwitch is the switch of a client that has no directory of its own.
	hostSwitch = "/run/grl/disabled"
	// maxSwitch is how long a switch file may be.
	maxSwitch = 64 << 10
	// switchEvery is how often it is looked for.
	switchEvery = time.Second
	// everything is what a switch file says to disable all services; an empty
	// one says it too.
	everything = "all"
)

// SwitchFile returns the file that disables all dropping, or that of single
// services, at the clients with this configuration, while it is there.
func SwitchFile(c Config) string {
	switch {
	case c.SwitchFile != "":
		return c.SwitchFile
	case c.StateDir != "":
		return filepath.Join(c.StateDir, "disabled")
	default:
		return hostSwitch
	}
}

// WriteSwitch creates the switch file at path, for these services, or for all if
// there are none. A client that looks at it meanwhile sees it whole or not.
func WriteSwitch(path string, services ...string) error {
	for _, name := range services {
		if err := limiter.CheckName(name); err != nil {
			return fmt.Errorf("write switch file: service: %w", err)
		}
	}
	if len(services) == 0 {
		services = []string{everything}
	}
	if err := replaceSwitch(path, strings.Join(services, "\n")+"\n"); err != nil {
		return fmt.Errorf("write switch file: %w", err)
	}
	return nil
}

func replaceSwitch(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	w, err := os.CreateTemp(dir, ".disabled-*")
	if err != nil {
		return err
	}
	_, err = w.WriteString(text)
	// The client may be another user.
	err = errors.Join(err, w.Chmod(0o644), w.Close())
	if err == nil {
		err = os.Rename(w.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(w.Name()))
	}
	return nil
}

// RemoveSwitch removes the switch file at path; that there is none is no error.
func RemoveSwitch(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove switch file: %w", err)
	}
	return nil
}

// disabled is what a switch file says.
type disabled struct {
	all      bool
	services []string // sorted
}

func (d disabled) any() bool { return d.all || len(d.services) > 0 }

// readSwitch reads the switch file at path; nothing is disabled if there is
// none.
func readSwitch(path string) (disabled, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return disabled{}, nil
	case err != nil:
		return disabled{}, err
	case !info.Mode().IsRegular(): // a pipe would have the client wait
		return disabled{}, fmt.Errorf("%s: not a regular file", path)
	}
	r, err := os.Open(path)
	if err != nil {
		return disabled{}, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxSwitch+1))
	if err != nil {
		return disabled{}, err
	}
	if len(text) > maxSwitch {
		return disabled{}, fmt.Errorf("%s: more than %d bytes", path, maxSwitch)
	}
	d, err := parseSwitch(string(text))
	if err != nil {
		return disabled{}, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// parseSwitch reads names of services, one a line.
func parseSwitch(text string) (disabled, error) {
	d := disabled{all: strings.TrimSpace(text) == ""}
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		switch {
		case name == "":
			continue
		case name == everything:
			d.all = true
			continue
		}
		if err := limiter.CheckName(name); err != nil {
			return disabled{}, fmt.Errorf("service: %w", err)
		}
		d.services = append(d.services, name)
	}
	slices.Sort(d.services)
	d.services = slices.Compact(d.services)
	return d, nil
}

// watchSwitch has the limiter do what the switch file says, until ctx ends. A
// file that cannot be read changes nothing: neither are limits turned off by
// trouble with the disk, nor on again in an incident.
func (c *Client) watchSwitch(ctx context.Context) {
	path := SwitchFile(c.opts.Config)
	tick := time.NewTicker(switchEvery)
	defer tick.Stop()
	failure := ""
	var held disabled
	for {
		next, err := readSwitch(path)
		switch {
		case err != nil && err.Error() != failure:
			failure = err.Error()
			c.opts.Log.WarnContext(ctx, "cannot read switch file; what it said last holds", "err", err, "disabled", held.any())
		case err == nil:
			failure = ""
			c.turnSwitch(ctx, path, held, next)
			held = next
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *Client) turnSwitch(ctx context.Context, path string, held, next disabled) {
	if next.all == held.all && slices.Equal(next.services, held.services) {
		return
	}
	c.opts.Limiter.SetDisabled(next.all, next.services...)
	c.mu.Lock()
	c.state.disabledHere = next.any()
	c.mu.Unlock()
	if next.any() {
		c.opts.Log.WarnContext(ctx, "drops nothing here: disabled by the switch file", "path", path, "all", next.all, "services", next.services)
	} else {
		c.opts.Log.InfoContext(ctx, "drops again: the switch file is gone", "path", path)
	}
}
