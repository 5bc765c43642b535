package roles

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/viper"

	"grl/proto/tlsfiles"
	"grl/roles/aggregator"
	"grl/roles/client"
	"grl/roles/configurator"
	"grl/roles/controller"
)

// ErrUsage marks errors of whoever started grl: a wrong flag, environment
// variable or configuration file. main exits with 2 for it.
var ErrUsage = errors.New("wrong use")

// Config is grl.toml: a section for each role, the certificate and the log.
type Config struct {
	Client       client.Config       `mapstructure:"client"`
	Aggregator   aggregator.Config   `mapstructure:"aggregator"`
	Controller   controller.Config   `mapstructure:"controller"`
	Configurator configurator.Config `mapstructure:"configurator"`
	TLS          tlsfiles.Config     `mapstructure:"tls"`
	Log          LogConfig           `mapstructure:"log"`
}

// LogConfig is the section [log] of grl.toml.
type LogConfig struct {
	// Level is debug, info, warn or error. Changes without a restart.
	Level string `mapstructure:"level"`
	// Format is text or json.
	Format string `mapstructure:"format"`
}

// Default returns the configuration of all roles on one machine.
func Default() Config {
	return Config{
		Client:       client.Default(),
		Aggregator:   aggregator.Default(),
		Controller:   controller.Default(),
		Configurator: configurator.Default(),
		TLS:          tlsfiles.Default(),
		Log:          LogConfig{Level: "info", Format: "text"},
	}
}

// Validate returns all that is wrong with c, each error with its key.
func (c LogConfig) Validate() error {
	var errs []error
	if _, err := c.level(); err != nil {
		errs = append(errs, err)
	}
	if c.Format != "text" && c.Format != "json" {
		errs = append(errs, fmt.Errorf("log.format: %q is neither text nor json", c.Format))
	}
	return errors.Join(errs...)
}

func (c LogConfig) level() (slog.Level, error) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	l, ok := levels[c.Level]
	if !ok {
		return 0, fmt.Errorf("log.level: %q is none of debug, info, warn, error", c.Level)
	}
	return l, nil
}

// Validate returns all that is wrong with the sections of the named roles, the
// certificate and the log; sections of roles that do not run may be incomplete.
func (c Config) Validate(roles ...string) error {
	var errs []error
	for _, r := range table {
		if slices.Contains(roles, r.name) && r.validate != nil {
			errs = append(errs, r.validate(c))
		}
	}
	for _, l := range listeners(c, roles) {
		if err := validateAddress(l.address); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.key, err))
		}
	}
	return errors.Join(append(errs, c.validateTLS(roles), c.Log.Validate())...)
}

// Load puts the configuration together: flags over the environment over file
// over the defaults. File may be empty for none; environ is as os.Environ
// returns it; flags maps keys to values of the key's type. Roles find each other
// where the same configuration has them listen. All that is unknown
// or misspelt is an error that names the nearest key. The result is not yet
// validated, since that depends on the roles that run.
func Load(file string, environ []string, flags map[string]any) (Config, error) {
	v := viper.New()
	for _, k := range Keys() {
		v.SetDefault(k.Name, k.Default)
	}
	var errs []error
	if file != "" {
		values, err := readFile(file)
		errs = append(errs, err)
		errs = append(errs, v.MergeConfigMap(values))
	}
	values, err := readEnv(environ)
	errs = append(errs, err)
	errs = append(errs, v.MergeConfigMap(nest(values)), v.MergeConfigMap(nest(flags)))
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	var c Config
	if err := v.UnmarshalExact(&c); err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	c.findNeighbours(v.InConfig)
	return c, nil
}

// nest turns "client.zone" → v into "client" → "zone" → v.
func nest(flat map[string]any) map[string]any {
	nested := map[string]any{}
	for name, value := range flat {
		section, key, _ := strings.Cut(name, ".")
		if nested[section] == nil {
			nested[section] = map[string]any{}
		}
		nested[section].(map[string]any)[key] = value
	}
	return nested
}

// readFile reads a grl.toml. Errors carry the file, the line and the key.
func readFile(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if err := checkStrict(file, text); err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return values, nil
}

// CheckConfig reads a grl.toml and validates all its sections, as serve would;
// the environment is left out. It returns all that is wrong.
func CheckConfig(file string) error {
	c, err := Load(file, nil, nil)
	if err != nil {
		return err
	}
	if err := c.Validate(allRoles()...); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// shown is a value as it may be logged: of the address that alerts are sent to the
// server alone, since its path is often what proves who sends.
func shown(k Key) any {
	address, ok := k.Default.(string)
	if u, err := url.Parse(address); ok && k.Name == "controller.alert_webhook" {
		if err != nil {
			return "…"
		}
		return u.Scheme + "://" + u.Host + "/…"
	}
	return k.Default
}

// changes lists what differs between two configurations as "key=value" of b.
func changes(a, b Config) []string {
	var list []string
	before := keysOf(a)
	for i, k := range keysOf(b) {
		if !reflect.DeepEqual(before[i].Default, k.Default) {
			list = append(list, fmt.Sprintf("%s=%v", k.Name, shown(k)))
		}
	}
	return list
}
