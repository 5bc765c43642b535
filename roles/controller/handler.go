package controller

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/wire"
	"grl/roles/controller/api"
	"grl/roles/controller/people"
	"grl/web"
	"grl/web/page"
)

// Services are the names of the services that Handler serves.
func Services() []string {
	return append([]string{grlv1connect.TreeServiceName, grlv1connect.ViewServiceName, grlv1connect.AccessServiceName}, api.Services()...)
}

// Handler serves the streams of children, the API and the dashboard. Who asks is
// in the context of a request, see access.From: what stands before it puts it
// there, and lets through only what that one may.
func (c *Controller) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(grlv1connect.NewTreeServiceHandler(c, connect.WithReadMaxBytes(wire.MaxDown)))
	pages := c.pages()
	for _, route := range c.routes(&pages) {
		mux.Handle(route.Path, web.CheckHost(pages, route.Handler))
	}
	mux.Handle("/", web.New(pages))
	return mux
}

// routes returns the services for people, and hands them to the pages.
func (c *Controller) routes(pages *web.Options) []api.Route {
	v := view{Controller: c}
	path, handler := grlv1connect.NewViewServiceHandler(v, connect.WithReadMaxBytes(wire.MaxReport))
	routes := []api.Route{{Path: path, Handler: handler}}
	pages.Services.View = v
	if c.opts.Config.Regional() {
		parent := strings.Join(c.opts.Config.Parent, " or ")
		pages.Services.Elsewhere = parent
		routes = append(routes, api.Elsewhere(fmt.Sprintf("this controller takes its configuration from its parent: ask %s", parent))...)
	} else {
		a := c.api
		pages.Services = page.Services{
			View: v, Config: a.Config, Incident: a.Incident, Audit: a.Audit, Policy: a.Policy, RLC: a.RLC, Alert: a.Alert, Audited: c.audited,
		}
		routes = append(routes, a.Routes()...)
	}
	if c.opts.People != nil {
		path, handler := grlv1connect.NewAccessServiceHandler(c.opts.People.Service(), connect.WithConditionalHandlerOptions(people.Bounds))
		routes = append(routes, api.Route{Path: path, Handler: handler})
	}
	return routes
}

func (c *Controller) pages() web.Options {
	o := web.Options{Backend: view{Controller: c}, Log: c.opts.Log, Version: c.opts.Version, AnyHost: c.opts.AnyHost, Stop: c.stop}
	if u, err := url.Parse(c.opts.Config.PublicURL); err == nil && u.Hostname() != "" {
		o.Hosts = append(o.Hosts, u.Hostname())
	}
	if c.opts.People != nil {
		o.People = c.opts.People
	}
	return o
}
