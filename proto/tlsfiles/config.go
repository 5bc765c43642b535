package tlsfiles

import (
	"errors"
	"fmt"

	"grl/proto/access"
)

// Config is the section [tls] of grl.toml: the files of a node's certificate.
type Config struct {
	// Cert is a file with the node's certificate and those between it and CA, Key
	// one with its private key, CA one with the certificates that are trusted;
	// PEM. All three or none: without, nodes speak plain text.
	Cert string `mapstructure:"cert"`
	Key  string `mapstructure:"key"`
	CA   string `mapstructure:"ca"`
	// Domain is the trust domain of all nodes.
	Domain string `mapstructure:"domain"`
}

// DefaultDomain is the trust domain unless one is named.
const DefaultDomain = "grl.internal"

// Default returns the configuration without TLS.
func Default() Config { return Config{Domain: DefaultDomain} }

// Enabled reports whether c names files.
func (c Config) Enabled() bool { return c.Cert != "" || c.Key != "" || c.CA != "" }

// Validate returns all that is wrong with c, each error with its key; the files
// are not read.
func (c Config) Validate() error {
	if !c.Enabled() {
		return nil
	}
	var errs []error
	for _, f := range []struct{ key, file string }{{"cert", c.Cert}, {"key", c.Key}, {"ca", c.CA}} {
		if f.file == "" {
			errs = append(errs, fmt.Errorf("tls.%s: empty; TLS needs cert, key and ca", f.key))
		}
	}
	if err := access.CheckDomain(c.Domain); err != nil {
		errs = append(errs, fmt.Errorf("tls.domain: %w", err))
	}
	return errors.Join(errs...)
}
