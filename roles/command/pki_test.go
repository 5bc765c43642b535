package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"grl/roles/command"
	"grl/roles/pki"
)

// runPKI executes grl pki and returns what it prints.
func runPKI(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := command.PKI()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

// TestPKI goes through the life of the certificates of a small fleet.
func TestPKI(t *testing.T) {
	t.Chdir(t.TempDir())
	issue := []string{"issue", "--role", "client", "--zone", "eu1", "--svc", "payments", "--out", "payments"}
	tests := []struct {
		name string
		args []string
		code int    // 0: done; 1: failed; 2: wrong use
		want string // part of the output, or of the error
	}{
		{"nothing said", nil, 2, "init, issue, rotate or show"},
		{"no CA yet", issue, 1, "make one with grl pki init --dir ca"},
		{"init without a directory", []string{"init"}, 2, "--dir"},
		{"init with a wrong domain", []string{"init", "--dir", "ca", "--domain", "A"}, 2, "trust domain"},
		{"init", []string{"init", "--dir", "ca"}, 0, "made a CA for grl.internal in ca"},
		{"init again", []string{"init", "--dir", "ca"}, 1, "is there already"},
		{"issue without a directory", []string{"issue", "--role", "client", "--zone", "z", "--svc", "s"}, 2, "--out"},
		{"issue without a role", []string{"issue", "--zone", "z", "--out", "o"}, 2, `unknown role ""`},
		{"issue without a service", []string{"issue", "--role", "client", "--zone", "z", "--out", "o"}, 2, "/svc/"},
		{"issue without a host", []string{"issue", "--role", "controller", "--zone", "eu", "--out", "o"}, 2, "--host"},
		{"issue", issue, 0, "issued a certificate in payments: client of payments in zone eu1, for 24h0m0s"},
		{"issue again", issue, 1, "is there already"},
		{"issue again, as asked", append(issue, "--replace"), 0, "issued"},
		{"nothing to rotate", []string{"rotate", "payments"}, 0, "nothing is due"},
		{"rotate, first step", []string{"rotate", "--ca", "payments"}, 0, "trusts both"},
		{"rotate, second step", []string{"rotate", "--ca", "payments"}, 0, "replaced payments/cert.pem: client of payments in zone eu1"},
		{"rotate what is none", []string{"rotate", "ca"}, 1, "ca/cert.pem"},
		{"show", []string{"show", "payments/cert.pem"}, 0, "spiffe://grl.internal/role/client/zone/eu1/svc/payments"},
		{"show CAs", []string{"show", "payments/ca.pem"}, 0, "kind     CA"},
		{"show a key", []string{"show", "payments/key.pem"}, 1, "no certificate in it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := runPKI(t, tt.args...)
			code, text := 0, out
			if err != nil {
				code, text = 1, err.Error()
			}
			var exit *command.ExitError
			if errors.As(err, &exit) {
				code = exit.Code
			}
			if code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("grl pki %s: code %d, %q; want %d with %q", strings.Join(tt.args, " "), code, text, tt.code, tt.want)
			}
		})
	}
	out, err := runPKI(t, "show", "--json", "payments/ca.pem")
	var shown []pki.Shown
	if err == nil {
		err = json.Unmarshal([]byte(out), &shown)
	}
	if err != nil || len(shown) != 2 || !shown[0].CA || shown[0].Serial == shown[1].Serial {
		t.Errorf("shows %+v, %v; want two CAs", shown, err)
	}
}
