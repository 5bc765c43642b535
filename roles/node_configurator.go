package roles

import (
	"context"
	"errors"
	"net/http"

	"grl/roles/configurator"
)

// validateConfigurator also makes sure that files reach the configuration in one
// way, as far as one process can tell.
func validateConfigurator(c Config) error {
	err := c.Configurator.Validate()
	if c.Configurator.Repository != "" && c.Controller.Limits != "" {
		err = errors.Join(err, errors.New("configurator.repository: controller.limits is set too; limits files come from one of them"))
	}
	return err
}

func configuratorListeners(c Config) []listener {
	return []listener{{"configurator.listen", c.Configurator.Listen, true}}
}

func buildConfigurator(ctx context.Context, c Config, p parts) (*node, error) {
	cf, err := configurator.New(ctx, configurator.Options{
		Config: c.Configurator, Version: p.version, Registry: p.registry, Log: p.log, HTTP: p.dial(anyController), Own: p.own,
	})
	if err != nil {
		return nil, err
	}
	return &node{
		run: cf.Run, ready: cf.Ready, close: cf.Close,
		handlers: map[string]http.Handler{"configurator.listen": cf.Handler()},
	}, nil
}
