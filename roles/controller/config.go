package controller

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// Config is the section [controller] of grl.toml.
type Config struct {
	// Region is where the controller runs.
	Region string `mapstructure:"region"`
	// Parent holds the controllers of the parent group, as URLs. With one, this
	// controller is regional: it takes the configuration from there, decides the
	// cells of its region and zones, and passes on what the parent decides of
	// global ones. Empty: it decides everything.
	Parent []string `mapstructure:"parent"`
	// Autonomy is how long a regional controller that lost its parent goes on
	// with its last share of global limits. 0: not at all. At least 1 ms,
	// default 30 s.
	Autonomy time.Duration `mapstructure:"autonomy"`
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
		Region:   "local",
		Parent:   []string{},
		Autonomy: law.Autonomy,
		Listen:   "127.0.0.1:7070",
		DB:       "grl-data",
	}
}

// Regional reports whether the controller has a parent.
func (c Config) Regional() bool { return len(c.Parent) > 0 }

// Validate returns all that is wrong with c, each error with its key.
func (c Config) Validate() error {
	var errs []error
	if err := limiter.CheckName(c.Region); err != nil {
		errs = append(errs, fmt.Errorf("controller.region: %w", err))
	}
	errs = append(errs, c.validateParent())
	if c.Autonomy != 0 && (c.Autonomy < time.Millisecond || c.Autonomy > 24*time.Hour) {
		errs = append(errs, fmt.Errorf(`controller.autonomy: %v is neither 0 nor from 1ms to 24h (write a unit: "30s")`, c.Autonomy))
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

// validateParent returns what keeps c from being that of a regional controller,
// nil if it has no parent.
func (c Config) validateParent() error {
	if !c.Regional() {
		return nil
	}
	var errs []error
	for _, address := range c.Parent {
		if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("controller.parent: %q is no URL like http://127.0.0.1:7070", address))
		}
	}
	if c.Limits != "" {
		errs = append(errs, fmt.Errorf("controller.limits: a controller with a parent has no limits of its own; they come from %s", strings.Join(c.Parent, ", ")))
	}
	if c.Region == globalDecider {
		errs = append(errs, fmt.Errorf("controller.region: %q is what the parent decides as; a region needs another name", c.Region))
	}
	return errors.Join(errs...)
}
