package people

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"grl/limiter"
	"grl/proto/access"
	"grl/store/ledger"
)

const (
	maxName          = 64      // bytes of the name of an account or token
	maxPasswordBytes = 4 * 256 // MaxPassword characters, the longest in UTF-8
	// MostServices is how many services, and how many owners, an account lists.
	MostServices  = 1000
	maxOwnerBytes = 256

	// local is the name of everyone while there is no account.
	local = "local"
)

// checkName returns what keeps name from being one of an account with a
// password.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return invalid("the name of an account has 1 to %d bytes; this one has %d", maxName, len(name))
	}
	for i, r := range name {
		alphanumeric := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if !alphanumeric && (i == 0 || !strings.ContainsRune("._@-", r)) {
			return invalid("the name of an account has lower-case letters, digits and . _ @ - and begins with a letter or digit")
		}
	}
	if name == local || name == nobody || name == others {
		return invalid("%q means somebody else; take another name", name)
	}
	return nil
}

// checkAccount returns what keeps a, without its password, from being written.
func checkAccount(a ledger.Account) error {
	if levelOf(a.Role) == access.Nobody {
		return invalid("the role is missing: viewer, editor or admin")
	}
	if a.Role != roleEditor && len(a.Services)+len(a.Owners) > 0 {
		return invalid("services and owners are for editors; a %s has none", a.Role)
	}
	if err := checkServices(a.Services); err != nil {
		return err
	}
	if len(a.Owners) > MostServices {
		return invalid("%d owners; at most %d", len(a.Owners), MostServices)
	}
	for _, o := range a.Owners {
		if !goodOwner(o) {
			return invalid("owner %q is no name of up to %d bytes without control characters", short(o), maxOwnerBytes)
		}
	}
	return nil
}

func checkServices(services []string) error {
	if len(services) > MostServices {
		return invalid("%d services; at most %d", len(services), MostServices)
	}
	for _, s := range services {
		if err := limiter.CheckName(s); err != nil {
			return invalid("service %q: %v", short(s), err)
		}
	}
	return nil
}

func goodOwner(owner string) bool {
	return owner != "" && len(owner) <= maxOwnerBytes && utf8.ValidString(owner) && !strings.ContainsFunc(owner, unicode.IsControl)
}

// short cuts what is quoted in an answer.
func short(s string) string {
	if len(s) <= 64 {
		return s
	}
	return strings.ToValidUTF8(s[:64], "") + "…"
}

// Accounts returns all for an admin, else one's own, without passwords.
func (p *People) Accounts(ctx context.Context) ([]ledger.Account, error) {
	who, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := p.ledger.Accounts(ctx)
	if err != nil {
		return nil, p.refuse(ctx, err)
	}
	var visible []ledger.Account
	for _, a := range accounts {
		if who.Level == access.Admin || a.Name == who.Name {
			visible = append(visible, a)
		}
	}
	return visible, nil
}

// PutAccount creates the account of that name, or changes its role, services and
// owners and, unless password is empty, its password, which ends its other
// sessions. For admins. a.Password and a.CreatedAt are not looked at.
func (p *People) PutAccount(ctx context.Context, a ledger.Account, password string) (ledger.Account, error) {
	who, err := admin(ctx)
	if err != nil {
		return ledger.Account{}, err
	}
	done, err := p.change(ctx)
	if err != nil {
		return ledger.Account{}, p.refuse(ctx, err)
	}
	defer done()
	a, err = p.putAccount(ctx, act(ctx, ""), a, password)
	if err == nil && password != "" {
		err = p.endAll(ctx, act(ctx, "password changed"), a.Name, who.Session)
	}
	return a, p.refuse(ctx, err)
}

// putAccount checks and writes. The caller holds changing.
func (p *People) putAccount(ctx context.Context, by ledger.Act, a ledger.Account, password string) (ledger.Account, error) {
	if err := checkAccount(a); err != nil {
		return ledger.Account{}, err
	}
	old, err := p.ledger.Account(ctx, a.Name)
	exists := err == nil
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return ledger.Account{}, err
	}
	if exists {
		err = checkChange(old, a, password)
	} else {
		err = checkNew(a, password)
	}
	if err != nil {
		return ledger.Account{}, err
	}
	a.Password, a.CreatedAt = old.Password, old.CreatedAt
	if !exists {
		a.CreatedAt = time.Now()
	}
	if password != "" {
		if a.Password, err = p.hasher.hash(ctx, password); err != nil {
			return ledger.Account{}, err
		}
	}
	return a, p.write(ctx, by, a)
}

// write puts an account into the ledger. The caller holds changing.
func (p *People) write(ctx context.Context, by ledger.Act, a ledger.Account) error {
	err := p.ledger.PutAccount(ctx, by, a)
	p.cache.forget()
	if err == nil {
		p.begun.Store(true)
	}
	return err
}

func checkNew(a ledger.Account, password string) error {
	if strings.HasPrefix(a.Name, emailPrefix) || strings.HasPrefix(a.Name, subjectPrefix) {
		return invalid("an account of the provider is made when its person signs in first; there is no %q yet", short(a.Name))
	}
	if err := checkName(a.Name); err != nil {
		return err
	}
	return checkPassword(password)
}

func checkChange(old, a ledger.Account, password string) error {
	if old.Password == "" && (password != "" || a.Role != old.Role) {
		return precondition("%q signs in through the provider, which says its role and keeps its password", a.Name)
	}
	if password == "" {
		return nil
	}
	return checkPassword(password)
}

// DeleteAccount ends the account's sessions and tokens too. For admins; the last
// one stays.
func (p *People) DeleteAccount(ctx context.Context, name string) error {
	if _, err := admin(ctx); err != nil {
		return err
	}
	done, err := p.change(ctx)
	if err != nil {
		return p.refuse(ctx, err)
	}
	defer done()
	err = p.ledger.DeleteAccount(ctx, act(ctx, ""), name)
	p.cache.forget()
	if errors.Is(err, ledger.ErrNotFound) {
		return notFound("there is no account %q", short(name))
	}
	return p.refuse(ctx, err)
}
