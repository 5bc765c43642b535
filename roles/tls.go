package roles

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/proto/tlsfiles"
	"grl/proto/uplink"
)

// validateTLS returns what keeps [tls] and the addresses that the roles dial
// from being of one kind: with TLS all control ports speak it.
func (c Config) validateTLS(roles []string) error {
	errs := []error{c.TLS.Validate()}
	dialled := map[string][]string{
		"client":     c.Client.Aggregators,
		"aggregator": c.Aggregator.Controllers,
		"controller": c.Controller.Parent,
	}
	keys := map[string]string{"client": "client.aggregators", "aggregator": "aggregator.controllers", "controller": "controller.parent"}
	for _, role := range roles {
		for _, address := range dialled[role] {
			switch secure := strings.HasPrefix(address, "https:"); {
			case secure && !c.TLS.Enabled():
				errs = append(errs, fmt.Errorf("%s: %s needs a certificate: set cert, key and ca in [tls]", keys[role], address))
			case !secure && c.TLS.Enabled():
				errs = append(errs, fmt.Errorf("%s: %s is plain text, and with [tls] nodes speak TLS: write https://", keys[role], address))
			}
		}
	}
	return errors.Join(errs...)
}

// openTLS reads the certificate of this process, nil without TLS, and checks
// that it is one of the roles that run.
func openTLS(c Config, roles []string, log *slog.Logger, registry prometheus.Registerer) (*tlsfiles.Files, error) {
	if !c.TLS.Enabled() {
		return nil, nil
	}
	files, err := tlsfiles.Open(tlsfiles.Options{Config: c.TLS, Log: log, Registry: registry})
	if err != nil {
		return nil, usage(err)
	}
	var errs []error
	for _, role := range roles {
		if err := mayRun(c, files.Node(), role); err != nil {
			errs = append(errs, fmt.Errorf("tls.cert: certificate of %s: %w", files.Node(), err))
		}
	}
	return files, usage(errors.Join(errs...))
}

// mayRun returns what keeps a process with the certificate of n from running a
// role: its peers would refuse it. A controller is trusted with all below it, so
// that --role all needs one certificate.
func mayRun(c Config, n access.Node, role string) error {
	zone, region := c.Client.Zone, c.Client.Region
	switch role {
	case access.Aggregator:
		zone, region = c.Aggregator.Zone, c.Aggregator.Region
	case access.Controller:
		region = c.Controller.Region
	}
	switch {
	case n.Role == access.Controller && n.Zone != region:
		return fmt.Errorf("%s.region is %q", role, region)
	case n.Role == access.Controller:
		return nil
	case n.Role != role:
		return fmt.Errorf("the role %s needs one with /role/%s", role, role)
	case n.Zone != zone:
		return fmt.Errorf("%s.zone is %q", role, zone)
	case role == access.Client:
		for _, own := range []string{c.Client.Service, c.Client.Caller} {
			if own != "" && own != n.Service {
				return fmt.Errorf("client.service or client.caller is %q", own)
			}
		}
	}
	return nil
}

// dial returns what opens streams to nodes that check takes; nil, without TLS,
// stands for uplink.HTTPClient.
func (p parts) dial(check func(access.Node) error) *http.Client {
	if p.tls == nil {
		return nil
	}
	return uplink.TLSClient(p.tls.Dial(check))
}

// aggregatorOf accepts the aggregators of a zone, and the controller of a region
// that is one too.
func aggregatorOf(zone, region string) func(access.Node) error {
	return func(n access.Node) error {
		if n.Role == access.Aggregator && n.Zone == zone || n.Role == access.Controller && n.Zone == region {
			return nil
		}
		return fmt.Errorf("%s answers, not the aggregator of zone %s", n, zone)
	}
}

// anyController accepts controllers.
func anyController(n access.Node) error {
	if n.Role == access.Controller {
		return nil
	}
	return fmt.Errorf("%s answers, not a controller", n)
}

// plainExposed lists the control ports that others can reach in plain text.
func plainExposed(c Config, roles []string) []listener {
	if c.TLS.Enabled() {
		return nil
	}
	return beyondLoopback(listeners(c, roles))
}
