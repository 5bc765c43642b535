package aggregator

import (
	"errors"
	"fmt"
	"net/url"

	"grl/limiter"
)

// Config is the section [aggregator] of grl.toml.
type Config struct {
	// Zone and Region are where the aggregator and its hosts run.
	Zone   string `mapstructure:"zone"`
	Region string `mapstructure:"region"`
	// Controllers of the parent group, as URLs; all of them are told.
	Controllers []string `mapstructure:"controllers"`
	// Listen is the address for clients, metrics and health.
	Listen string `mapstructure:"listen"`
}

// Default returns the configuration of an aggregator on one machine.
func Default() Config {
	return Config{
		Zone:        "local",
		Region:      "local",
		Controllers: []string{"http://127.0.0.1:7070"},
		Listen:      "127.0.0.1:7071",
	}
}

// Validate returns all that is wrong with c, each error with its key.
func (c Config) Validate() error {
	var errs []error
	if err := limiter.CheckName(c.Zone); err != nil {
		errs = append(errs, fmt.Errorf("aggregator.zone: %w", err))
	}
	if err := limiter.CheckName(c.Region); err != nil {
		errs = append(errs, fmt.Errorf("aggregator.region: %w", err))
	}
	if len(c.Controllers) == 0 {
		errs = append(errs, errors.New("aggregator.controllers: empty; an aggregator needs at least one"))
	}
	for i, s := range c.Controllers {
		if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("aggregator.controllers[%d]: %q is no URL like http://127.0.0.1:7070", i, s))
		}
	}
	return errors.Join(errs...)
}
