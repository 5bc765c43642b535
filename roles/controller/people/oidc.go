package people

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
)

// OIDC is an OpenID provider that signs people in, by the code flow with PKCE.
// What they may do follows from the claim `groups` of the ID token, anew at each
// login.
type OIDC struct {
	// Issuer is the provider's, such as https://login.example.com. Required;
	// http only on loopback.
	Issuer string
	// ClientID is what grl is called there. Required.
	ClientID string
	// SecretFile holds the client's secret, and is read at each login. Empty: the
	// client is public, and proves itself by PKCE alone.
	SecretFile string
	// PublicURL is where people reach the dashboard; the provider sends them to
	// /oidc/callback there. Required; http only on loopback.
	PublicURL string
	// Admins, Editors and Viewers are values of the claim; who has one in several
	// lists gets the most. An editor may change the services whose owner is one of
	// the person's values. Admins is required: nobody else could change anything.
	Admins, Editors, Viewers []string
	// HTTP reaches the provider; nil: over the network, with a deadline and a bound
	// on answers.
	HTTP *http.Client
}

const (
	maxSecretFile = 4 << 10
	// MostGroups is how many values of the claim are looked at.
	MostGroups     = 1000
	maxGroup       = 256
	callbackPath   = "/oidc/callback"
	maxOIDCSetting = 2 << 10
)

// Validate returns all that is wrong with o, each error with its key.
func (o OIDC) Validate() error {
	var errs []error
	if err := checkProviderURL(o.Issuer); err != nil {
		errs = append(errs, fmt.Errorf("controller.oidc_issuer: %w", err))
	}
	if o.ClientID == "" || len(o.ClientID) > maxOIDCSetting {
		errs = append(errs, errors.New("controller.oidc_client_id: missing, or longer than 2 KiB; the provider says what grl is called there"))
	}
	if err := checkProviderURL(o.PublicURL); err != nil {
		errs = append(errs, fmt.Errorf("controller.public_url: %w; the provider sends people back to it", err))
	}
	if len(o.Admins) == 0 {
		errs = append(errs, errors.New("controller.oidc_admins: empty; nobody could change accounts or anything that needs an admin"))
	}
	for key, list := range map[string][]string{"oidc_admins": o.Admins, "oidc_editors": o.Editors, "oidc_viewers": o.Viewers} {
		for _, v := range list {
			if v == "" || len(v) > maxGroup {
				errs = append(errs, fmt.Errorf("controller.%s: %q is no value of 1 to %d bytes of the claim groups", key, v, maxGroup))
			}
		}
	}
	if _, err := o.secret(); err != nil {
		errs = append(errs, fmt.Errorf("controller.oidc_client_secret_file: %w", err))
	}
	return errors.Join(errs...)
}

// checkProviderURL takes https anywhere, and http on this machine.
func checkProviderURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(s) > maxOIDCSetting {
		return fmt.Errorf("%q is no URL like https://login.example.com", short(s))
	}
	if !protected(u) {
		return fmt.Errorf("%q must be https; http only on loopback", short(s))
	}
	return nil
}

func protected(u *url.URL) bool {
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// secret reads the client's secret; "" without a file. Its error quotes nothing
// of it.
func (o OIDC) secret() (string, error) {
	if o.SecretFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(o.SecretFile)
	if err != nil {
		return "", err
	}
	secret := string(bytes.TrimSpace(content))
	if secret == "" || len(content) > maxSecretFile {
		return "", fmt.Errorf("%s is empty or larger than 4 KiB", o.SecretFile)
	}
	return secret, nil
}
