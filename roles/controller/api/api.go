// Package api serves the public API of a controller: the configuration, caps
// and the switch that stops dropping, and the audit, as the Connect services of
// proto/grl/v1. docs/api.md has them.
package api

import (
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"grl/limiter/limitsfile"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

//go:generate go run ./internal/writedocs ../../../proto/grl/v1 ../../../docs/api.md

// Bounds on a request.
const (
	maxApply   = limitsfile.MaxTotalBytes // bytes of Apply
	maxRequest = 1 << 20                  // bytes of any other

	appliesAtOnce = 2               // that are read or made, others wait
	applyTime     = 2 * time.Minute // that one may take to be sent

	mostRows  = 1_000 // of a list
	usualRows = 100
	maxFilter = 1 << 10 // bytes of what selects audit entries
)

// Options says what the API works with. All fields are required.
type Options struct {
	Desk   *desk.Desk
	Ledger *ledger.Ledger
	Log    *slog.Logger
}

// Route is a path with what serves it.
type Route struct {
	Path    string
	Handler http.Handler
}

// Routes returns the services of the API. Who calls is taken from
// access.From(ctx): the gate in front puts it there and has checked the role,
// and a call without a person is refused.
func Routes(o Options, more ...connect.HandlerOption) []Route {
	options := append([]connect.HandlerOption{
		connect.WithConditionalHandlerOptions(bounds),
		connect.WithCodec(strictJSON{"json"}),
		connect.WithCodec(strictJSON{"json; charset=utf-8"}),
	}, more...)
	config, configs := grlv1connect.NewConfigServiceHandler(configService{o}, options...)
	incident, incidents := grlv1connect.NewIncidentServiceHandler(incidentService{o}, options...)
	audit, audits := grlv1connect.NewAuditServiceHandler(auditService{o}, options...)
	return []Route{{config, inTurn(configs)}, {incident, incidents}, {audit, audits}}
}

// inTurn lets two applies in at a time, since a message of theirs, which a small
// compressed one may become, takes hundreds of megabytes while it is read. One
// that is sent too slowly does not hold up the others for ever.
func inTurn(next http.Handler) http.Handler {
	turns := make(chan struct{}, appliesAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != grlv1connect.ConfigServiceApplyProcedure {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-r.Context().Done():
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(applyTime)) // a network of tests has none
		next.ServeHTTP(w, r)
	})
}

func bounds(s connect.Spec) []connect.HandlerOption {
	if s.Procedure == grlv1connect.ConfigServiceApplyProcedure {
		return []connect.HandlerOption{connect.WithReadMaxBytes(maxApply)}
	}
	return []connect.HandlerOption{connect.WithReadMaxBytes(maxRequest)}
}

// Elsewhere returns routes of the same services that answer every call with
// FailedPrecondition and a text: where to ask instead.
func Elsewhere(text string) []Route {
	write := connect.NewErrorWriter()
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = write.Write(w, r, connect.NewError(connect.CodeFailedPrecondition, elsewhere(text))) // the peer may be gone
	})
	var routes []Route
	for _, name := range []string{grlv1connect.ConfigServiceName, grlv1connect.IncidentServiceName, grlv1connect.AuditServiceName} {
		routes = append(routes, Route{"/" + name + "/", refuse})
	}
	return routes
}

type elsewhere string

func (e elsewhere) Error() string { return string(e) }
