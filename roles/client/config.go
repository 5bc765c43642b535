package client

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"grl/limiter"
)

// Config is the section [client] of grl.toml.
type Config struct {
	// Service is the callee behind the inbound proxy. Required with Upstream.
	Service string `mapstructure:"service"`
	// Zone and Region are where the workload runs.
	Zone   string `mapstructure:"zone"`
	Region string `mapstructure:"region"`
	// Aggregators of the zone, as URLs; one is used, another when it fails.
	Aggregators []string `mapstructure:"aggregators"`
	// Upstream is the workload's own address: http://, https:// or h2c://.
	// Empty: no inbound proxy.
	Upstream string `mapstructure:"upstream"`
	// Listen is the address of the inbound proxy.
	Listen string `mapstructure:"listen"`
	// Caller is the fixed caller name of the outbound proxy. Empty: no
	// outbound proxy.
	Caller string `mapstructure:"caller"`
	// OutboundListen is the address of the outbound proxy.
	OutboundListen string `mapstructure:"outbound_listen"`
	// IdentityHeaders name the caller, the first that is set; unverified.
	IdentityHeaders []string `mapstructure:"identity_headers"`
	// AttemptHeaders count the attempts of a request from 1; gRPC's own
	// grpc-previous-rpc-attempts is read beside them. Empty: only that.
	AttemptHeaders []string `mapstructure:"attempt_headers"`
	// TrustedProxies are the peers, as CIDR networks, whose
	// x-forwarded-client-cert header is believed.
	TrustedProxies []string `mapstructure:"trusted_proxies"`
	// SPIFFECaller says where in the path of a SPIFFE id the caller's name
	// stands, as a template like "/ns/*/sa/{caller}". Empty: the last segment.
	SPIFFECaller string `mapstructure:"spiffe_caller"`
	// Hold is how long ratios stay when the aggregator is silent. 0 begins to
	// decay at once.
	Hold time.Duration `mapstructure:"hold"`
	// Decay is how long they fall to 0 after that. 0 opens at once.
	Decay time.Duration `mapstructure:"decay"`
	// StateDir is a directory in which the last five configurations that were
	// held for a minute, and the last directives, are kept, so that a restart
	// while no aggregator answers does not forget them. Empty: nothing is kept.
	// Two clients do not share one.
	StateDir string `mapstructure:"state_dir"`
	// SwitchFile is a file that disables all dropping, or that of the services
	// it names, while it is there. Empty: disabled in StateDir, or
	// /run/grl/disabled without one.
	SwitchFile string `mapstructure:"switch_file"`
	// Admin is the address of metrics and health.
	Admin string `mapstructure:"admin"`
}

// Default returns the configuration of a client that only needs to be told its
// service and upstream.
func Default() Config {
	return Config{
		Zone:            "local",
		Region:          "local",
		Aggregators:     []string{"http://127.0.0.1:7071"},
		Listen:          "127.0.0.1:9090",
		OutboundListen:  "127.0.0.1:9091",
		IdentityHeaders: []string{"rpc-caller", "x-grl-caller", "x-envoy-downstream-service-cluster"},
		AttemptHeaders:  []string{"x-envoy-attempt-count"},
		Hold:            10 * time.Second,
		Decay:           10 * time.Second,
		Admin:           "127.0.0.1:7072",
	}
}

// Validate returns all that is wrong with c, each error with its key.
func (c Config) Validate() error {
	var errs []error
	if c.Upstream != "" && c.Service == "" {
		errs = append(errs, errors.New("client.service: empty; an inbound proxy (client.upstream is set) needs the name of the service behind it"))
	}
	if err := limiter.CheckName(c.Service); c.Service != "" && err != nil {
		errs = append(errs, fmt.Errorf("client.service: %w", err))
	}
	if err := limiter.CheckName(c.Zone); err != nil {
		errs = append(errs, fmt.Errorf("client.zone: %w", err))
	}
	if err := limiter.CheckName(c.Region); err != nil {
		errs = append(errs, fmt.Errorf("client.region: %w", err))
	}
	for i, h := range c.IdentityHeaders {
		if !headerName(h) {
			errs = append(errs, fmt.Errorf("client.identity_headers[%d]: %q is no name of a header", i, h))
		}
	}
	for i, h := range c.AttemptHeaders {
		if !headerName(h) {
			errs = append(errs, fmt.Errorf("client.attempt_headers[%d]: %q is no name of a header", i, h))
		}
	}
	for i, a := range c.Aggregators {
		if err := validateURL(a); err != nil {
			errs = append(errs, fmt.Errorf("client.aggregators[%d]: %w", i, err))
		}
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"hold", c.Hold}, {"decay", c.Decay}} {
		if d.value != 0 && (d.value < time.Millisecond || d.value > 24*time.Hour) {
			errs = append(errs, fmt.Errorf(`client.%s: %v is neither 0 nor from 1ms to 24h (write a unit: "10s")`, d.key, d.value))
		}
	}
	return errors.Join(errs...)
}

// headerName reports whether s is a token of RFC 9110.
func headerName(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+.^_`|~-", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

func validateURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("%q is no URL like http://127.0.0.1:7071", s)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is no URL like http://127.0.0.1:7071", s)
	}
	return nil
}
