package controller

import (
	"errors"
	"fmt"
	"net/url"

	"grl/limiter"
)

// Config is the section [controller] of grl.toml.
type Config struct {
	// Region is where the controller runs.
	Region string `mapstructure:"region"`
	// Listen is the address for aggregators, the API, the dashboard, metrics
	// and health.
	Listen string `mapstructure:"listen"`
	// DB is the directory of the store: grl.db and history.db.
	DB string `mapstructure:"db"`
	// Limits is a directory of limits files to load and watch. Empty: the
	// store alone says what the limits are.
	Limits string `mapstructure:"limits"`
	// PublicURL is where people reach the dashboard; refusals link to it.
	// Empty: no links.
	PublicURL string `mapstructure:"public_url"`
}

// Default returns the configuration of a controller on one machine.
func Default() Config {
	return Config{
		Region: "local",
		Listen: "127.0.0.1:7070",
		DB:     "grl-data",
	}
}

// Validate returns all that is wrong with c, each error with its key.
func (c Config) Validate() error {
	var errs []error
	if err := limiter.CheckName(c.Region); err != nil {
		errs = append(errs, fmt.Errorf("controller.region: %w", err))
	}
	if c.DB == "" {
		errs = append(errs, errors.New("controller.db: empty; it names the directory of the store"))
	}
	if c.PublicURL != "" {
		if u, err := url.Parse(c.PublicURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("controller.public_url: %q is no URL like https://grl.example.com", c.PublicURL))
		}
	}
	return errors.Join(errs...)
}
