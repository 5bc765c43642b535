package configurator

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Config is the section [configurator] of grl.toml.
type Config struct {
	// Controller holds the controllers of the group that has no parent, as URLs.
	Controller []string `mapstructure:"controller"`
	// Repository is the limits repository: a git checkout, a folder in one, or a
	// plain directory. Empty: there is none.
	Repository string `mapstructure:"repository"`
	// Branch of the limits repository that is read and pushed. Empty: the one
	// that is checked out.
	Branch string `mapstructure:"branch"`
	// Source is where history comes from: "history", the controller's own; the
	// URL of a Prometheus-compatible server; or "csv:" and a directory.
	Source string `mapstructure:"source"`
	// SourceTokenFile holds a bearer token for a URL in Source, and SourceTenant
	// is sent to it as X-Scope-OrgID. Empty: none.
	SourceTokenFile string `mapstructure:"source_token_file"`
	SourceTenant    string `mapstructure:"source_tenant"`
	// WebhookSecretFile holds the secret that calls of the webhook prove. Empty:
	// there is no webhook.
	WebhookSecretFile string `mapstructure:"webhook_secret_file"`
	// TokenFile holds the API token of an admin, for a controller that has
	// accounts and speaks plain text. Empty: none; with [tls] none is needed.
	TokenFile string `mapstructure:"token_file"`
	// Listen is the address for the webhook, metrics and health.
	Listen string `mapstructure:"listen"`
}

// Own is the Source that is the controller's own history.
const Own = "history"

// csvPrefix begins a Source that is a directory.
const csvPrefix = "csv:"

// Default returns the configuration of a configurator on one machine.
func Default() Config {
	return Config{
		Controller: []string{"http://127.0.0.1:7070"},
		Source:     Own,
		Listen:     "127.0.0.1:7074",
	}
}

// Validate returns all that is wrong with c, each error with its key.
func (c Config) Validate() error {
	var errs []error
	if len(c.Controller) == 0 {
		errs = append(errs, errors.New("configurator.controller: empty; it holds the addresses of the controllers"))
	}
	for _, address := range c.Controller {
		if !isURL(address) {
			errs = append(errs, fmt.Errorf("configurator.controller: %q is no URL like http://127.0.0.1:7070", address))
		}
	}
	if dir, ok := strings.CutPrefix(c.Source, csvPrefix); c.Source != Own && !isURL(c.Source) && (!ok || dir == "") {
		errs = append(errs, fmt.Errorf(`configurator.source: %q is neither "history", a URL like http://127.0.0.1:9090, nor "csv:" and a directory`, c.Source))
	}
	if !isURL(c.Source) && (c.SourceTokenFile != "" || c.SourceTenant != "") {
		errs = append(errs, errors.New("configurator.source: source_token_file and source_tenant go with a URL"))
	}
	if c.Repository == "" && (c.Branch != "" || c.WebhookSecretFile != "") {
		errs = append(errs, errors.New("configurator.repository: empty; branch and webhook_secret_file go with one"))
	}
	if strings.HasPrefix(c.Branch, "-") {
		errs = append(errs, fmt.Errorf("configurator.branch: %q is no name of a branch", c.Branch))
	}
	return errors.Join(errs...)
}

func isURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
