package aggregator

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// Config is the section [aggregator] of grl.toml.
type Config struct {
	// Zone and Region are where the aggregator and its hosts run.
	Zone   string `mapstructure:"zone"`
	Region string `mapstructure:"region"`
	// Controllers of the parent group, as URLs; all of them are told.
	Controllers []string `mapstructure:"controllers"`
	// Autonomy is how long the aggregator decides alone, with its last share,
	// when its controllers are silent. 0: it does not; the hosts hold, then
	// decay.
	Autonomy time.Duration `mapstructure:"autonomy"`
	// StateDir is a directory in which configuration and directives survive a
	// restart. Empty: nothing is kept.
	StateDir string `mapstructure:"state_dir"`
	// Listen is the address for clients, metrics and health.
	Listen string `mapstructure:"listen"`
}

// Default returns the configuration of an aggregator on one machine.
func Default() Config {
	return Config{
		Zone:        "local",
		Region:      "local",
		Controllers: []string{"http://127.0.0.1:7070"},
		Autonomy:    law.Autonomy,
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
	if c.Autonomy != 0 && (c.Autonomy < time.Millisecond || c.Autonomy > 24*time.Hour) {
		errs = append(errs, fmt.Errorf(`aggregator.autonomy: %v is neither 0 nor from 1ms to 24h (write a unit: "30s")`, c.Autonomy))
	}
	return errors.Join(errs...)
}
