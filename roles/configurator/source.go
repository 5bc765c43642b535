package configurator

import (
	"context"
	"net/url"
	"strings"

	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/configurator/history"
)

// openSource returns where history comes from.
func (c *Configurator) openSource() (history.Source, error) {
	o := c.opts.Config
	if dir, ok := strings.CutPrefix(o.Source, csvPrefix); ok {
		return history.NewCSV(dir), nil
	}
	if o.Source != Own {
		return history.NewPrometheus(history.PrometheusOptions{URL: o.Source, TokenFile: o.SourceTokenFile, Tenant: o.SourceTenant})
	}
	return c.own(), nil
}

// own returns the controller's own history as a source.
func (c *Configurator) own() history.Source {
	return history.NewController(func(ctx context.Context, call func(context.Context, grlv1connect.ConfiguratorServiceClient) error) error {
		return c.group.do(ctx, func(ctx context.Context, to conn) error { return call(ctx, to) })
	})
}

// sourceShown is the source without what is secret in it.
func (c *Configurator) sourceShown() string {
	if u, err := url.Parse(c.opts.Config.Source); err == nil && u.User != nil {
		return u.Redacted()
	}
	return c.opts.Config.Source
}
