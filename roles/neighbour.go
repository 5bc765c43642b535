package roles

import (
	"net"
	"net/url"
)

// neighbours are the keys by which a role finds another one of the same
// configuration, and where that one listens.
var neighbours = []struct {
	key    string
	of     func(*Config) *[]string
	listen func(*Config) string
}{
	{"client.aggregators", func(c *Config) *[]string { return &c.Client.Aggregators }, func(c *Config) string { return c.Aggregator.Listen }},
	{"aggregator.controllers", func(c *Config) *[]string { return &c.Aggregator.Controllers }, func(c *Config) string { return c.Controller.Listen }},
	{"configurator.controller", func(c *Config) *[]string { return &c.Configurator.Controller }, func(c *Config) string { return c.Controller.Listen }},
}

// findNeighbours lets roles find those of the same configuration that listen
// elsewhere than by default. What is set stays; so does the default where the
// port is not known beforehand.
func (c *Config) findNeighbours(set func(key string) bool) {
	defaults := Default()
	for _, n := range neighbours {
		listen := n.listen(c)
		if set(n.key) || listen == n.listen(&defaults) {
			continue
		}
		if address, ok := reachedAt(listen, c.TLS.Enabled()); ok {
			*n.of(c) = []string{address}
		}
	}
}

// reachedAt returns the URL under which this machine reaches what listens at an
// address; false if that cannot be told.
func reachedAt(listen string, tls bool) (address string, ok bool) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", false
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if tls {
		u.Scheme = "https"
	}
	return u.String(), true
}
