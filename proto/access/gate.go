package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Options says what a gate guards.
type Options struct {
	// Role of the server: Client, Aggregator, Controller or Configurator.
	// Required.
	Role string
	// Domain is the trust domain in which nodes have certificates. Empty: the
	// port speaks plain text, and nodes need none.
	Domain string
	// Anonymous is what a person who proves nothing may do while there is no
	// account; the zero value is nothing.
	Anonymous Level
	// Own is what the configurator of this very process proves itself by, as a
	// bearer; empty: there is none.
	Own string
	// People knows who may sign in; nil: nobody may, and there is no account.
	People People
	// Registry takes the gate's metrics. Required.
	Registry prometheus.Registerer
	// Refused hears what was refused, a bounded number of times a minute, from
	// the request's goroutine; nil: nobody does.
	Refused func(context.Context, Refusal)
}

// Gate lets through to a control port only what the table of procedures allows.
// Create it with NewGate. It may be used concurrently.
type Gate struct {
	opts     Options
	refused  *prometheus.CounterVec
	refusals refusals
	errors   *connect.ErrorWriter
}

// NewGate returns the gate of a port.
func NewGate(o Options) *Gate {
	return &Gate{
		opts: o,
		refused: promauto.With(o.Registry).NewCounterVec(prometheus.CounterOpts{
			Name:        "grl_access_refused_total",
			Help:        "Requests to a control port that were refused, by role of the port and reason.",
			ConstLabels: prometheus.Labels{"role": o.Role},
		}, []string{"reason"}),
		errors: connect.NewErrorWriter(),
	}
}

// Reasons of refusals, the label of the metric.
const (
	refusedUndeclared  = "undeclared"  // no such procedure in the table
	refusedAnonymous   = "anonymous"   // proved nothing
	refusedCredentials = "credentials" // of a token, session or certificate that does not hold
	refusedRights      = "rights"      // may not
	refusedOrigin      = "origin"      // a page of another site asks
	refusedUnavailable = "unavailable" // cannot tell now
)

// Handler lets requests through to next that the table allows, with their
// Identity in the context.
func (g *Gate) Handler(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, doubt := g.identify(r)
		w.Header().Set(requestID, id.RequestID)
		r = r.WithContext(With(r.Context(), id))
		rule, declared := RuleOf(r.URL.Path)
		if !declared && g.opts.Role == Controller && browses(r) {
			r.URL = &url.URL{Path: noPage} // of the copy
			rule, declared = RuleOf(noPage)
		}
		var no *denial
		switch {
		case !declared:
			no = &denial{connect.CodeUnimplemented, refusedUndeclared, "there is no such procedure"}
		case crossOrigin.Check(r) != nil:
			no = &denial{connect.CodePermissionDenied, refusedOrigin, "a page of another site may not do this"}
		default:
			no = g.check(r.URL.Path, rule, id, doubt)
		}
		if no == nil {
			next.ServeHTTP(w, r)
			return
		}
		g.refused.WithLabelValues(no.reason).Inc()
		g.tell(r, id, no)
		g.answer(w, r, no)
	})
}

// noPage is the path of a page that is not there, which says so.
const noPage = "/not-found"

// browses reports whether a browser asks for a page under a path that is none of
// a service. What is asked for is not handed on: the path could be cleaned into
// one.
func browses(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	return !strings.HasPrefix(r.URL.Path, "/grl.") && !strings.HasPrefix(r.URL.Path, "/grpc.")
}

// doubts are what was wrong with what was given as proof.
type doubts struct {
	certificate error
	bearer      error
}

// identify returns who makes a request.
func (g *Gate) identify(r *http.Request) (Identity, doubts) {
	id := Identity{From: address(r), RequestID: idOf(r)}
	var doubt doubts
	if g.opts.Domain != "" {
		n, err := OfConnection(r.TLS, g.opts.Domain)
		switch {
		case err == nil:
			id.Node = &n
		case !errors.Is(err, errNoCertificate):
			doubt.certificate = err
		}
	}
	people := g.opts.People
	secret := bearer(r)
	if own := g.opts.Own; own != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(own)) == 1 {
		id.Node = &Node{Role: Configurator}
		return id, doubt
	}
	if secret != "" && people != nil {
		p, err := people.Person(r.Context(), secret, id.From)
		if err == nil {
			id.Person = &p
			return id, doubt
		}
		doubt.bearer = err
	}
	if g.opts.Anonymous > Nobody && (people == nil || people.Open(r.Context())) {
		id.Person = local(g.opts.Anonymous)
	}
	return id, doubt
}

// denial is why a request is refused.
type denial struct {
	code   connect.Code
	reason string
	text   string // for the peer
}

// check returns why the caller may not have what a path leads to, nil if it may.
func (g *Gate) check(path string, rule Rule, id Identity, doubt doubts) *denial {
	nodes := rule.Nodes[g.opts.Role]
	switch {
	case rule.Anyone,
		len(nodes) > 0 && rule.People == Nobody && g.opts.Domain == "",
		id.Node != nil && slices.Contains(nodes, id.Node.Role),
		rule.People > Nobody && id.Person != nil && id.Person.Level >= rule.People:
		return nil
	case rule.People > Nobody && (id.Node == nil || len(nodes) == 0):
		return noPerson(path, rule.People, id, doubt)
	default:
		return noNode(path, nodes, id, doubt)
	}
}

// noPerson returns the denial of a caller that is no person of a level.
func noPerson(path string, level Level, id Identity, doubt doubts) *denial {
	name := procedure(path)
	switch {
	case id.Person != nil:
		return &denial{connect.CodePermissionDenied, refusedRights, fmt.Sprintf("%s is %s; %s needs %s", id.Person.Name, id.Person.Level, name, level)}
	case errors.Is(doubt.bearer, ErrUnknown):
		return &denial{connect.CodeUnauthenticated, refusedCredentials, ErrUnknown.Error() + "; sign in again"}
	case doubt.bearer != nil:
		return &denial{connect.CodeUnavailable, refusedUnavailable, "cannot tell who this is right now; try again"}
	case id.Node != nil:
		return &denial{connect.CodePermissionDenied, refusedRights, fmt.Sprintf("%s may not call %s, which is for people", id.Node, name)}
	default:
		return &denial{connect.CodeUnauthenticated, refusedAnonymous, fmt.Sprintf("%s needs %s: sign in, or send a token as Authorization: Bearer", name, level)}
	}
}

// noNode returns the denial of a caller that is no node of these roles.
func noNode(path string, roles []string, id Identity, doubt doubts) *denial {
	name, wanted := procedure(path), strings.Join(roles, " or ")
	switch {
	case len(roles) == 0:
		return &denial{connect.CodePermissionDenied, refusedRights, "nobody may call " + name + " here"}
	case id.Node != nil:
		return &denial{connect.CodePermissionDenied, refusedRights, fmt.Sprintf("%s may not call %s here; %s may", id.Node, name, wanted)}
	case doubt.certificate != nil:
		return &denial{connect.CodeUnauthenticated, refusedCredentials, doubt.certificate.Error()}
	default:
		return &denial{connect.CodeUnauthenticated, refusedAnonymous, fmt.Sprintf("%s needs the certificate of %s", name, wanted)}
	}
}

// procedure returns a path as refusals name it: Service/Method, or the page.
func procedure(path string) string {
	if _, ok := rules[path]; !ok {
		return "this page"
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// answer tells the peer why its request is refused, as its protocol does.
func (g *Gate) answer(w http.ResponseWriter, r *http.Request, no *denial) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	// What stands before the pages is as closed as they are.
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
	switch page := !isProcedure(r.URL.Path); {
	case page && no.code == connect.CodeUnauthenticated && g.opts.People != nil && toSignIn(w, r):
	case page || !g.errors.IsSupported(r):
		http.Error(w, "grl: "+no.text, status(no.code))
	default:
		_ = g.errors.Write(w, r, connect.NewError(no.code, errors.New(no.text))) // the peer went away
	}
}

// toSignIn leads a browser that asks for a page to where one signs in, and back
// from there. It reports false for a request that is no such thing.
func toSignIn(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if r.Header.Get("HX-Request") == "true" {
		w.Header().Set("HX-Redirect", "/login") // of a part of a page
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	to := "/login"
	if next := r.URL.RequestURI(); next != "/" {
		to += "?next=" + url.QueryEscape(next)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return true
}

func status(code connect.Code) int {
	switch code {
	case connect.CodeUnauthenticated:
		return http.StatusUnauthorized
	case connect.CodeUnimplemented:
		return http.StatusNotFound
	case connect.CodeUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusForbidden
	}
}
