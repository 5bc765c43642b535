// Package remote is the connection of a command to the public API of a
// controller: where it is, as whom it is called, and what its errors mean to a
// person.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"

	"grl/proto/grl/v1/grlv1connect"
)

// DefaultURL is where a controller of this machine listens.
const DefaultURL = "http://127.0.0.1:7070"

// Variables that say what the flags say, where those are not given.
const (
	VariableURL       = "GRL_URL"
	VariableToken     = "GRL_TOKEN"
	VariableTokenFile = "GRL_TOKEN_FILE"
	VariableCA        = "GRL_CA_FILE"
)

// Variables returns the names of all variables of commands.
func Variables() []string {
	return []string{VariableURL, VariableToken, VariableTokenFile, VariableCA}
}

const (
	callTimeout  = 10 * time.Second
	probeTimeout = 2 * time.Second
)

// ErrUsage marks an error of whoever gave the flags or variables.
var ErrUsage = errors.New("wrong use")

// Flags say where the controller is, and who calls. The zero value is this
// machine's, with what the last login left.
type Flags struct {
	URLs      []string // controllers of one group; nil: DefaultURL
	TokenFile string
	CAFile    string // PEM; empty: the certificates of the system
}

// Add adds the flags to a set.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.URLs, "controller", nil, "`URL` of the controller; of several the first that answers (default "+DefaultURL+", or "+VariableURL+")")
	flags.StringVar(&f.TokenFile, "token-file", "", "`file` with an API token (or "+VariableTokenFile+", or the token in "+VariableToken+")")
	flags.StringVar(&f.CAFile, "ca", "", "`file` with the certificates that sign the controller's (or "+VariableCA+")")
}

// Conn is a connection to one controller. Calls through it have a deadline of
// 10 s unless their context has an earlier one or WithTimeout has set another,
// and their errors are an *Error.
type Conn struct {
	Config   grlv1connect.ConfigServiceClient
	Incident grlv1connect.IncidentServiceClient
	Audit    grlv1connect.AuditServiceClient
	Access   grlv1connect.AccessServiceClient
	View     grlv1connect.ViewServiceClient
	Policy   grlv1connect.PolicyServiceClient
	RLC      grlv1connect.RLCServiceClient
	// URL is that of the controller.
	URL string
	// Exposed says that a token is sent to another machine in plain text.
	Exposed bool
}

// Dial returns a connection to the controller that f and the variables name,
// which getenv returns as os.Getenv does. Of several controllers it is the first
// that answers. Wrong flags are an ErrUsage.
func (f *Flags) Dial(ctx context.Context, getenv func(string) string) (*Conn, error) {
	urls, err := f.urls(getenv)
	if err != nil {
		return nil, err
	}
	client, err := httpClient(firstOf(f.CAFile, getenv(VariableCA)))
	if err != nil {
		return nil, err
	}
	chosen, err := choose(ctx, client, urls)
	if err != nil {
		return nil, err
	}
	token, err := f.token(getenv, chosen)
	if err != nil {
		return nil, err
	}
	conn := connectTo(client, chosen.String(), token)
	conn.Exposed = token != "" && chosen.Scheme == "http" && !isLoopback(chosen.Hostname())
	return conn, nil
}

// Connect returns a connection to the controller at a URL, without a token.
func Connect(client *http.Client, url string) *Conn { return connectTo(client, url, "") }

func (f *Flags) urls(getenv func(string) string) ([]*url.URL, error) {
	texts := f.URLs
	if len(texts) == 0 {
		texts = strings.FieldsFunc(firstOf(getenv(VariableURL), DefaultURL), func(r rune) bool { return r == ',' || r == ' ' })
	}
	var urls []*url.URL
	for _, text := range texts {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" {
			return nil, fmt.Errorf("%w: controller %q is no URL like %s", ErrUsage, text, DefaultURL)
		}
		urls = append(urls, u)
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("%w: no controller: name one with --controller or %s", ErrUsage, VariableURL)
	}
	return urls, nil
}

// choose returns the first of the controllers that answers.
func choose(ctx context.Context, client *http.Client, urls []*url.URL) (*url.URL, error) {
	if len(urls) == 1 {
		return urls[0], nil // the call itself will tell
	}
	var errs []error
	for _, u := range urls {
		err := probe(ctx, client, u)
		if err == nil {
			return u, nil
		}
		errs = append(errs, &Error{URL: u.String(), Err: connect.NewError(connect.CodeUnavailable, err)})
	}
	return nil, errors.Join(errs...)
}

func probe(ctx context.Context, client *http.Client, u *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("healthz").String(), nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func connectTo(client *http.Client, url, token string) *Conn {
	c := caller{url: url, token: token}
	options := connect.WithInterceptors(connect.UnaryInterceptorFunc(c.intercept))
	return &Conn{
		Config:   grlv1connect.NewConfigServiceClient(client, c.url, options),
		Incident: grlv1connect.NewIncidentServiceClient(client, c.url, options),
		Audit:    grlv1connect.NewAuditServiceClient(client, c.url, options),
		Access:   grlv1connect.NewAccessServiceClient(client, c.url, options),
		View:     grlv1connect.NewViewServiceClient(client, c.url, options),
		Policy:   grlv1connect.NewPolicyServiceClient(client, c.url, options),
		RLC:      grlv1connect.NewRLCServiceClient(client, c.url, options),
		URL:      c.url,
	}
}

// caller makes the calls of one connection.
type caller struct{ url, token string }

// timeoutKey is where WithTimeout leaves the timeout of calls.
type timeoutKey struct{}

// WithTimeout returns ctx for calls that may take so long, each.
func WithTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, d)
}

func (c caller) intercept(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		timeout, set := ctx.Value(timeoutKey{}).(time.Duration)
		if !set {
			timeout = callTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if c.token != "" {
			r.Header().Set("Authorization", "Bearer "+c.token)
		}
		response, err := next(ctx, r)
		if err != nil {
			return nil, &Error{URL: c.url, Timeout: timeout, Err: err}
		}
		return response, nil
	}
}

// firstOf returns the first of texts that is not empty.
func firstOf(texts ...string) string {
	if i := slices.IndexFunc(texts, func(t string) bool { return t != "" }); i >= 0 {
		return texts[i]
	}
	return ""
}
