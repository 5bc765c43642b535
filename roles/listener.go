package roles

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
)

// A listener is an address that a role serves, named by its key.
type listener struct {
	key     string // "controller.listen"
	address string // host:port; port 0 takes a free one
	control bool   // carries control, not the workload's traffic
}

// listeners lists what the named roles listen on.
func listeners(c Config, roles []string) []listener {
	var all []listener
	for _, r := range table {
		if slices.Contains(roles, r.name) && r.listeners != nil {
			all = append(all, r.listeners(c)...)
		}
	}
	return all
}

// validateAddress returns what is wrong with an address to listen on.
func validateAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address like 127.0.0.1:7070", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q of %q is not a number from 0 to 65535", port, address)
	}
	return nil
}

// listen opens l.
func (l listener) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	open, err := config.Listen(ctx, "tcp", l.address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s is taken by another process or key", l.key, l.address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.key, err)
	}
	return open, nil
}

// beyondLoopback lists the control addresses that other machines can reach.
func beyondLoopback(all []listener) []listener {
	return slices.DeleteFunc(slices.Clone(all), func(l listener) bool { return !l.control || !reachable(l.address) })
}

// reachable reports whether other machines can reach an address. A name other
// than localhost may mean any address.
func reachable(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host != "localhost" && !net.ParseIP(host).IsLoopback()
}

// leadsTo reports whether who dials address, host:port, reaches a listener at
// listen on this machine.
func leadsTo(address, listen string) bool {
	dialled, port, _ := net.SplitHostPort(address)
	bound, boundPort, _ := net.SplitHostPort(listen)
	if port != boundPort || port == "0" {
		return false
	}
	to := localIP(dialled)
	if bound == "" || net.ParseIP(bound).IsUnspecified() {
		return to.IsLoopback()
	}
	return dialled == bound || to != nil && to.Equal(localIP(bound))
}

// localIP returns the address behind a host; localhost, and any address when it
// is dialled, are 127.0.0.1. nil: not known without asking.
func localIP(host string) net.IP {
	ip := net.ParseIP(host)
	if host == "localhost" || host == "" || ip.IsUnspecified() {
		return net.IPv4(127, 0, 0, 1)
	}
	return ip
}
