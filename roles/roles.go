// Package roles is the composition root: it knows each role of grl, reads
// grl.toml, and serves any of the roles in one process. It is the only package
// that knows all the others, and the only user of viper.
package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/proto/tlsfiles"
)

// table is the architecture: who there is, from the request upwards. Reports go
// up it and directives down; roles start from its end and stop from its
// beginning. The role "all" is all of them in one process, joined by the same
// RPC.
var table = []role{
	{"client", validateClient, clientListeners, buildClient},                         // decides each request from the last directive; counts; reports
	{"aggregator", validateAggregator, aggregatorListeners, buildAggregator},         // sums the hosts of a zone; passes directives down
	{"controller", validateController, controllerListeners, buildController},         // sums the zones, computes drop ratios, holds limits and history
	{"configurator", validateConfigurator, configuratorListeners, buildConfigurator}, // computes limits from history, by policies
}

// A role is a row of the table.
type role struct {
	name      string
	validate  func(Config) error
	listeners func(Config) []listener
	build     func(context.Context, Config, parts) (*node, error)
}

// parts are what every role is built with.
type parts struct {
	log      *slog.Logger
	registry prometheus.Registerer
	version  string
	tls      *tlsfiles.Files // nil: nodes speak plain text
	own      string          // by which the configurator of this process proves itself
}

// A node is a role that was built and does not run yet.
type node struct {
	run      func(context.Context) error
	ready    func() error
	handlers map[string]http.Handler               // key of a listener → what it serves; control listeners may lack one
	services []string                              // names of the RPC services, for health and reflection
	people   access.People                         // who may sign in; nil: nobody
	refused  func(context.Context, access.Refusal) // hears what a gate refused; nil: nobody does
	reload   func()                                // reads its files again; nil: has none
	close    func() error                          // after run has returned; nil: nothing to close
}

// allRoles lists the roles.
func allRoles() []string {
	var all []string
	for _, r := range table {
		all = append(all, r.name)
	}
	return all
}

// ParseRoles returns the named roles, each once, in the order of the table;
// "all" names all of them.
func ParseRoles(names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, usage(fmt.Errorf("no role; say --role %s or all", strings.Join(allRoles(), ", ")))
	}
	known := append([]string{"all"}, allRoles()...)
	wanted := map[string]bool{}
	var errs []error
	for _, name := range names {
		name = strings.TrimSpace(name)
		wanted[name] = true
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("unknown role %q; nearest is %q", name, nearest(name, known)))
		}
	}
	if len(errs) > 0 {
		return nil, usage(errors.Join(errs...))
	}
	return slices.DeleteFunc(allRoles(), func(name string) bool { return !wanted["all"] && !wanted[name] }), nil
}

// usageError is an ErrUsage that keeps the text of its cause.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error      { return e.error }

// usage marks err, unless nil, as an ErrUsage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}
