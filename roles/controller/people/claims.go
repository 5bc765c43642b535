package people

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Names of accounts that come from the provider begin with one of these; no
// account with a password can be called so.
const (
	emailPrefix   = "oidc:"
	subjectPrefix = "oidc-sub:"

	maxProviderName = 256
)

// claims are what is looked at of an ID token.
type claims struct {
	Subject         string `json:"sub"`
	Email           string `json:"email"`
	EmailVerified   bool   `json:"email_verified"`
	AuthorizedParty string `json:"azp"`
	Groups          groups `json:"groups"`
}

// groups is a list of names, or a single one.
type groups []string

// UnmarshalJSON implements json.Unmarshaler.
func (g *groups) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*g = groups{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(g))
}

// readClaims checks what the library leaves to its caller.
func readClaims(token *oidc.IDToken, clientID, nonce string) (claims, error) {
	var c claims
	if err := token.Claims(&c); err != nil {
		return claims{}, fmt.Errorf("read ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1 {
		return claims{}, errors.New("verify ID token: the nonce is not the one of this login")
	}
	if c.AuthorizedParty != "" && c.AuthorizedParty != clientID || c.AuthorizedParty == "" && len(token.Audience) > 1 {
		return claims{}, errors.New("verify ID token: it was made for another party")
	}
	if c.Subject == "" {
		return claims{}, errors.New("verify ID token: no subject")
	}
	if len(c.Groups) > MostGroups {
		c.Groups = c.Groups[:MostGroups]
	}
	return c, nil
}

// account is the name under which the person is known here: a verified address,
// since people read it in the audit, else the subject.
func (c claims) account() string {
	if email := strings.ToLower(c.Email); c.EmailVerified && strings.Contains(email, "@") && plain(email) {
		return emailPrefix + email
	}
	if plain(c.Subject) {
		return subjectPrefix + c.Subject
	}
	sum := sha256.Sum256([]byte(c.Subject))
	return subjectPrefix + hex.EncodeToString(sum[:])
}

// plain reports whether s can stand in a name as it is.
func plain(s string) bool {
	if s == "" || len(s) > maxProviderName-len(subjectPrefix) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && !strings.ContainsRune("._@+-|:", rune(c)) {
			return false
		}
	}
	return true
}

// role returns what the person's groups make them; "" is nobody.
func (c claims) role(o OIDC) string {
	for _, r := range []struct {
		name   string
		groups []string
	}{{roleAdmin, o.Admins}, {roleEditor, o.Editors}, {roleViewer, o.Viewers}} {
		if slices.ContainsFunc(c.Groups, func(g string) bool { return slices.Contains(r.groups, g) }) {
			return r.name
		}
	}
	return ""
}

// owners are the groups that can be owners of services.
func (c claims) owners() []string {
	owners := slices.DeleteFunc(slices.Clone(c.Groups), func(g string) bool { return !goodOwner(g) })
	slices.Sort(owners)
	return slices.Compact(owners)
}
