package controller

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/roles/controller/people"
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
	// Store keeps the configuration, caps, the audit and accounts: "sqlite", in
	// DB, for one controller, or "etcd", for a group of them that elect one.
	Store string `mapstructure:"store"`
	// Etcd holds the addresses of etcd, as URLs, for the store "etcd".
	Etcd []string `mapstructure:"etcd"`
	// DB is the directory of history.db and, with the store "sqlite", grl.db.
	DB string `mapstructure:"db"`
	// Limits is a directory of limits files to load and watch. Empty: the
	// store alone says what the limits are.
	Limits string `mapstructure:"limits"`
	// OIDCIssuer is an OpenID provider that also signs people in, and the others
	// how it does; empty: there is none. See people.OIDC.
	OIDCIssuer           string   `mapstructure:"oidc_issuer"`
	OIDCClientID         string   `mapstructure:"oidc_client_id"`
	OIDCClientSecretFile string   `mapstructure:"oidc_client_secret_file"`
	OIDCAdmins           []string `mapstructure:"oidc_admins"`
	OIDCEditors          []string `mapstructure:"oidc_editors"`
	OIDCViewers          []string `mapstructure:"oidc_viewers"`
	// PublicURL is where people reach the dashboard; refusals link to it.
	// Empty: no links.
	PublicURL string `mapstructure:"public_url"`
	// AlertWebhook is where alerts are sent, in the form of the Alertmanager;
	// empty: nowhere. It may not have a password in it.
	AlertWebhook string `mapstructure:"alert_webhook"`
	// AlertWebhookSecretFile holds a secret of at least 16 bytes by which what is
	// sent there is signed; empty: it is not.
	AlertWebhookSecretFile string `mapstructure:"alert_webhook_secret_file"`
}

// Default returns the configuration of a controller on one machine.
func Default() Config {
	return Config{
		Region:   "local",
		Parent:   []string{},
		Autonomy: law.Autonomy,
		Listen:   "127.0.0.1:7070",
		Store:    SQLite,
		Etcd:     []string{"http://127.0.0.1:2379"},
		DB:       "grl-data",

		OIDCAdmins:  []string{},
		OIDCEditors: []string{},
		OIDCViewers: []string{},
	}
}

// Values of Config.Store.
const (
	SQLite = "sqlite"
	Etcd   = "etcd"
)

// OIDC returns the provider that signs people in, nil if there is none.
func (c Config) OIDC() *people.OIDC {
	if c.OIDCIssuer == "" {
		return nil
	}
	return &people.OIDC{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, SecretFile: c.OIDCClientSecretFile, PublicURL: c.PublicURL,
		Admins: c.OIDCAdmins, Editors: c.OIDCEditors, Viewers: c.OIDCViewers,
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
	errs = append(errs, c.validateStore())
	if o := c.OIDC(); o != nil {
		errs = append(errs, o.Validate())
	}
	if c.DB == "" {
		errs = append(errs, errors.New("controller.db: empty; it names the directory of the store"))
	}
	if c.PublicURL != "" {
		if !isURL(c.PublicURL) {
			errs = append(errs, fmt.Errorf("controller.public_url: %q is no URL like https://grl.example.com", c.PublicURL))
		}
	}
	errs = append(errs, c.validateAlerts())
	return errors.Join(errs...)
}

// validateAlerts returns what is wrong with where alerts are sent.
func (c Config) validateAlerts() error {
	if c.AlertWebhook == "" {
		if c.AlertWebhookSecretFile != "" {
			return errors.New("controller.alert_webhook_secret_file: there is no alert_webhook whose messages it would sign")
		}
		return nil
	}
	u, err := url.Parse(c.AlertWebhook)
	switch {
	case err != nil || !isURL(c.AlertWebhook): // the text may hold a secret
		return errors.New("controller.alert_webhook: no URL like https://alerts.example.com/grl")
	case u.User != nil:
		return errors.New("controller.alert_webhook: has a name or password in it; sign messages by alert_webhook_secret_file instead")
	case c.Regional():
		return errors.New("controller.alert_webhook: a controller with a parent sends no alerts; the parent does")
	}
	return nil
}

// validateStore returns what is wrong with where the configuration is kept.
func (c Config) validateStore() error {
	if c.Store == SQLite {
		return nil
	}
	if c.Store != Etcd {
		return fmt.Errorf("controller.store: %q is neither %s nor %s", c.Store, SQLite, Etcd)
	}
	var errs []error
	if len(c.Etcd) == 0 {
		errs = append(errs, errors.New("controller.etcd: empty; it holds the addresses of etcd"))
	}
	for _, address := range c.Etcd {
		if !isURL(address) {
			errs = append(errs, fmt.Errorf("controller.etcd: %q is no URL like http://127.0.0.1:2379", address))
		}
	}
	return errors.Join(errs...)
}

func isURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// validateParent returns what keeps c from being that of a regional controller,
// nil if it has no parent.
func (c Config) validateParent() error {
	if !c.Regional() {
		return nil
	}
	var errs []error
	for _, address := range c.Parent {
		if !isURL(address) {
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
