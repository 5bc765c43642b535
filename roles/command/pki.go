package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"grl/proto/access"
	"grl/proto/tlsfiles"
	"grl/roles/pki"
)

// leafLife is how long the certificate of a node holds unless one says so.
const leafLife = 24 * time.Hour

// PKI returns the commands that make certificates for a fleet without a CA of
// its own. They need no control plane.
func PKI() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pki",
		Short: "Make certificates for a fleet that has no CA of its own",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return wrongUse(errors.New("say init, issue, rotate or show"))
		},
	}
	cmd.AddCommand(pkiInit(), pkiIssue(), pkiRotate(), pkiShow())
	return cmd
}

func pkiInit() *cobra.Command {
	var dir, domain string
	cmd := &cobra.Command{
		Use:   "init --dir DIR",
		Short: "Make a CA: its certificate ca.pem, and the key that signs",
		Long: `Make a CA for a trust domain, ECDSA P-256, that holds for a year. Keep the directory
where nobody else reads it: who has ca-key.pem can be any node of the fleet.`,
		Example: "  grl pki init --dir ca",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return wrongUse(errors.New("no directory; say --dir DIR"))
			}
			if err := access.CheckDomain(domain); err != nil {
				return wrongUse(err)
			}
			if err := pki.Init(dir, domain, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "made a CA for %s in %s\n", domain, dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` of the CA, created if missing")
	cmd.Flags().StringVar(&domain, "domain", tlsfiles.DefaultDomain, "trust `domain` of all nodes: tls.domain")
	return cmd
}

func pkiIssue() *cobra.Command {
	var dir, out string
	var node access.Node
	var hosts []string
	var life time.Duration
	var replace bool
	cmd := &cobra.Command{
		Use:   "issue --role ROLE --zone ZONE --out DIR",
		Short: "Issue the certificate of a node",
		Long: `Issue the certificate of a node, and write cert.pem, key.pem and ca.pem into a
directory, for tls.cert, tls.key and tls.ca. Controllers and aggregators need --host,
the names and addresses under which others dial them; of a controller, and a
configurator, the zone is its region. A client is one of a service.`,
		Example: `  grl pki issue --role controller --zone eu --host grl.internal,10.0.0.7 --out controller
  grl pki issue --role client --zone eu1 --svc payments --out payments`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return wrongUse(errors.New("no directory for the certificate; say --out DIR"))
			}
			if _, err := node.ID(tlsfiles.DefaultDomain); err != nil {
				return wrongUse(fmt.Errorf("--role, --zone, --svc: %w", err))
			}
			if len(hosts) == 0 && (node.Role == access.Controller || node.Role == access.Aggregator) {
				return wrongUse(fmt.Errorf("no host, and others dial a node that is %s: say --host NAME,IP", node.Role))
			}
			ca, err := pki.Open(dir)
			if err != nil {
				return err
			}
			if err := ca.Issue(out, pki.Request{Node: node, Hosts: hosts, Life: life}, replace, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "issued a certificate in %s: %s, for %v\n", out, node, life)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "ca", "`directory` of the CA")
	cmd.Flags().StringVar(&node.Role, "role", "", strings.Join(access.Roles(), ", "))
	cmd.Flags().StringVar(&node.Zone, "zone", "", "zone; the region of a controller or configurator")
	cmd.Flags().StringVar(&node.Service, "svc", "", "service of a client: client.service and client.caller")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "names and IP addresses under which others dial the node, with commas")
	cmd.Flags().StringVar(&out, "out", "", "`directory` for the certificate, created if missing")
	cmd.Flags().DurationVar(&life, "for", leafLife, "how long it holds")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a certificate that is there already")
	return cmd
}

func pkiRotate() *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "rotate [DIR]...",
		Short: "Renew what is due: the CA, and the certificates in directories",
		Long: `Renew what is due, for a timer to run each hour. The certificates of nodes in the
directories that are named are issued anew once half of their life is over; nodes take
them up while they run.

A third before the end of the CA's life a new one is made and trusted beside it; a day
later it signs. --ca does the next of these two steps now: between them every node
needs the new ca.pem.`,
		Example: "  grl pki rotate --dir ca controller payments",
		RunE: func(cmd *cobra.Command, args []string) error {
			ca, err := pki.Open(dir)
			if err != nil {
				return err
			}
			did, err := ca.Rotate(args, force, time.Now())
			for _, line := range did {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			if err == nil && len(did) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is due")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "ca", "`directory` of the CA")
	cmd.Flags().BoolVar(&force, "ca", false, "do the next step of a change of the CA now")
	return cmd
}

func pkiShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show FILE",
		Short:   "Show the certificates in a file",
		Example: "  grl pki show payments/cert.pem",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown, err := pki.Show(args[0])
			if err != nil {
				return fmt.Errorf("show certificate: %w", err)
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(shown)
			}
			for i, s := range shown {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				printCertificate(cmd.OutOrStdout(), s, time.Now())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printCertificate(w io.Writer, s pki.Shown, now time.Time) {
	left := s.Ends.Sub(now).Round(time.Minute)
	state := fmt.Sprintf("%v left", left)
	switch {
	case now.After(s.Ends):
		state = "expired"
	case now.Before(s.Begins):
		state = "not valid yet"
	}
	kind := "node"
	if s.CA {
		kind = "CA"
	}
	for _, row := range [][2]string{
		{"kind", kind},
		{"subject", s.Subject},
		{"id", strings.Join(s.URIs, ", ")},
		{"hosts", strings.Join(s.Hosts, ", ")},
		{"issuer", s.Issuer},
		{"begins", s.Begins.Format(time.RFC3339)},
		{"ends", s.Ends.Format(time.RFC3339) + " (" + state + ")"},
		{"serial", s.Serial},
		{"sha256", s.Fingerprint},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%-8s %s\n", row[0], row[1])
		}
	}
}
