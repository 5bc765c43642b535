// Package api serves the public API of a controller: the configuration, the
// policies by which limits are computed and what was, caps and the switch that
// stops dropping, and the audit, as the Connect services of proto/grl/v1; and
// what a configurator asks for. docs/api.md has them.
package api

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"grl/limiter/limitsfile"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/controller/desk"
	"grl/store"
	"grl/store/ledger"
)

//go:generate go run ./internal/writedocs ../../../proto/grl/v1 ../../../docs/api.md

// Bounds on a request.
const (
	maxApply   = limitsfile.MaxTotalBytes // bytes of Apply
	maxRecord  = 4 << 20                  // bytes of RecordResults
	maxNames   = 16 << 20                 // bytes of what names many buckets
	maxRequest = 1 << 20                  // bytes of any other

	appliesAtOnce = 2                // of the largest requests, that are read or made; others wait
	applyTime     = 2 * time.Minute  // that one may take to be sent
	historyTime   = 10 * time.Minute // that a history may take to be read

	mostRows  = 1_000 // of a list
	usualRows = 100
	maxFilter = 1 << 10 // bytes of what selects audit entries
)

// Options says what the API works with. All fields but Alert and Limits are required.
type Options struct {
	Desk   *desk.Desk
	Ledger *ledger.Ledger
	// History is read by configurators.
	History *store.Store
	// Alert tells what needs a person; nil: nothing does.
	Alert grlv1connect.AlertServiceHandler
	// Limits is the limits directory that the controller watches; "": none.
	Limits string
	Log    *slog.Logger
}

// Services are the names of the services of Routes.
func Services() []string {
	return []string{
		grlv1connect.ConfigServiceName, grlv1connect.IncidentServiceName, grlv1connect.AuditServiceName,
		grlv1connect.PolicyServiceName, grlv1connect.RLCServiceName, grlv1connect.ConfiguratorServiceName,
		grlv1connect.AlertServiceName,
	}
}

// Route is a path with what serves it.
type Route struct {
	Path    string
	Handler http.Handler
}

// API is the services, to be called in process or served by Routes. Who calls is
// taken from access.From(ctx), and a call without a person is refused; whether
// the role suffices is checked in front, by access.RuleOf.
type API struct {
	Config   grlv1connect.ConfigServiceHandler
	Incident grlv1connect.IncidentServiceHandler
	Audit    grlv1connect.AuditServiceHandler
	Policy   grlv1connect.PolicyServiceHandler
	RLC      grlv1connect.RLCServiceHandler
	Alert    grlv1connect.AlertServiceHandler

	configurator grlv1connect.ConfiguratorServiceHandler
}

// New returns the services.
func New(o Options) *API {
	return &API{
		Config: configService{o}, Incident: incidentService{o}, Audit: auditService{o}, Policy: policyService{o},
		RLC: rlcService{Options: o, later: &later{}}, Alert: o.Alert,
		configurator: configuratorService{Options: o, reading: make(chan struct{}, historiesAtOnce), pruned: new(atomic.Int64)},
	}
}

// Routes returns the services to be mounted.
func (a *API) Routes(more ...connect.HandlerOption) []Route {
	options := append([]connect.HandlerOption{
		connect.WithConditionalHandlerOptions(bounds),
		connect.WithCodec(strictJSON{"json"}),
		connect.WithCodec(strictJSON{"json; charset=utf-8"}),
	}, more...)
	turns := make(turns, appliesAtOnce)
	var routes []Route
	add := func(path string, handler http.Handler) { routes = append(routes, Route{path, turns.of(handler)}) }
	add(grlv1connect.NewConfigServiceHandler(a.Config, options...))
	add(grlv1connect.NewIncidentServiceHandler(a.Incident, options...))
	add(grlv1connect.NewAuditServiceHandler(a.Audit, options...))
	add(grlv1connect.NewPolicyServiceHandler(a.Policy, options...))
	add(grlv1connect.NewRLCServiceHandler(a.RLC, options...))
	if a.Alert != nil {
		add(grlv1connect.NewAlertServiceHandler(a.Alert, options...))
	}
	path, handler := grlv1connect.NewConfiguratorServiceHandler(a.configurator, options...)
	add(path, readInTime(handler))
	return routes
}

// readInTime ends a history that is not taken: few are read at once.
func readInTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == grlv1connect.ConfiguratorServiceReadHistoryProcedure {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(historyTime)) // a network of tests has none
		}
		next.ServeHTTP(w, r)
	})
}

// large are the procedures that take all limits files at once.
var large = map[string]bool{
	grlv1connect.ConfigServiceApplyProcedure:                 true,
	grlv1connect.ConfiguratorServiceApplyRepositoryProcedure: true,
}

// turns has room for as many large requests as are let in at a time, since a
// message of theirs, which a small compressed one may become, takes hundreds of
// megabytes while it is read.
type turns chan struct{}

// of lets large requests of a handler in. One that is sent too slowly does not
// hold up the others for ever.
func (t turns) of(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !large[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case t <- struct{}{}:
			defer func() { <-t }()
		case <-r.Context().Done():
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(applyTime)) // a network of tests has none
		next.ServeHTTP(w, r)
	})
}

func bounds(s connect.Spec) []connect.HandlerOption {
	most := maxRequest
	switch s.Procedure {
	case grlv1connect.ConfigServiceApplyProcedure, grlv1connect.ConfiguratorServiceApplyRepositoryProcedure:
		most = maxApply
	case grlv1connect.ConfiguratorServiceRecordResultsProcedure:
		most = maxRecord
	case grlv1connect.ConfiguratorServiceReadHistoryProcedure, grlv1connect.ConfiguratorServiceGetMemoryProcedure:
		most = maxNames
	}
	return []connect.HandlerOption{connect.WithReadMaxBytes(most)}
}

// Elsewhere returns routes of the same services that answer every call with
// FailedPrecondition and a text: where to ask instead.
func Elsewhere(text string) []Route {
	write := connect.NewErrorWriter()
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = write.Write(w, r, connect.NewError(connect.CodeFailedPrecondition, elsewhere(text))) // the peer may be gone
	})
	var routes []Route
	for _, name := range Services() {
		routes = append(routes, Route{"/" + name + "/", refuse})
	}
	return routes
}

type elsewhere string

func (e elsewhere) Error() string { return string(e) }
