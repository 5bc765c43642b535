package roles

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"grl/roles/client"
)

// healthTimeout bounds a health check; container runtimes give up later.
const healthTimeout = 3 * time.Second

// HealthcheckCommand returns the command that asks a role whether it is ready,
// for containers without a shell.
func HealthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck [ADDRESS]",
		Short: "Ask a role for its readiness: exit 0 when ready, 1 when not",
		Long: `Ask /readyz at the control address of a role: client.admin, aggregator.listen or
controller.listen, with https:// before it where the role speaks TLS. The default is
that of a client, ` + client.Default().Admin + `. The certificate is not checked, as by the probes of
Kubernetes: nothing secret is asked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := client.Default().Admin
			if len(args) == 1 {
				address = args[0]
			}
			return checkHealth(cmd.Context(), address)
		},
	}
}

// checkHealth returns nil when the role at address, host:port or a URL, is ready.
func checkHealth(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/readyz", nil)
	if err != nil {
		return usage(fmt.Errorf("check health of %q: %w", address, err))
	}
	// Not the default client: it would ask a proxy of the environment.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // only text for a person
		return fmt.Errorf("check health: %s is not ready: %s", address, strings.TrimSpace(string(reason)))
	}
	return nil
}
