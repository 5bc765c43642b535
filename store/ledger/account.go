package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/store"
)

// Account is a person who may sign in.
type Account struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"` // viewer, editor, admin
	Services  []string  `json:"services,omitempty"`
	Owners    []string  `json:"owners,omitempty"`
	Password  string    `json:"password,omitempty"` // argon2id in PHC form; "" with OIDC
	CreatedAt time.Time `json:"created_at"`
}

// RoleAdmin is the role of which there is always an account, once there are any.
const RoleAdmin = "admin"

// ErrLastAdmin says that there would be accounts and no admin among them.
var ErrLastAdmin = errors.New("no admin would be left")

// MaxAccounts bounds the accounts.
const MaxAccounts = 1000

// maxList bounds services and owners of an account or token.
const maxList = 1000

const keyAccount = "account/"

// shown is an account or a token as the audit shows it: without secrets.
type shown struct {
	Name      string    `json:"name"`
	Account   string    `json:"account,omitempty"`
	Role      string    `json:"role"`
	Services  []string  `json:"services,omitempty"`
	Owners    []string  `json:"owners,omitempty"`
	Password  string    `json:"password,omitempty"` // "set" or "changed"
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

func (a *Account) shown(password string) string {
	return string(encode(shown{Name: a.Name, Role: a.Role, Services: a.Services, Owners: a.Owners, Password: password}))
}

func (a *Account) validate() error {
	return errors.Join(
		checkTexts(a.Name, a.Role, a.Password), checkTexts(a.Services...), checkTexts(a.Owners...),
		checkTime("time of creation", a.CreatedAt))
}

// checkTexts returns an error for a list that is too long, or of texts that are.
func checkTexts(texts ...string) error {
	if len(texts) > maxList {
		return fmt.Errorf("list of %d, at most %d", len(texts), maxList)
	}
	for _, text := range texts {
		if len(text) > maxService {
			return fmt.Errorf("text of %d bytes, at most %d", len(text), maxService)
		}
	}
	return nil
}

// Accounts returns all accounts, in the order of their keys.
func (l *Ledger) Accounts(ctx context.Context) ([]Account, error) {
	accounts, err := list[Account](ctx, l.engine, keyAccount)
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	return accounts, nil
}

// list returns all that is below a prefix.
func list[T any](ctx context.Context, engine store.Engine, prefix string) ([]T, error) {
	records, err := engine.List(ctx, prefix, "", 0)
	if err != nil {
		return nil, err
	}
	return decodeAll[T](records)
}

// Account returns the account of a name. ErrNotFound if there is none.
func (l *Ledger) Account(ctx context.Context, name string) (Account, error) {
	a, err := get[Account](ctx, l.engine, keyAccount, name)
	if err != nil {
		return Account{}, fmt.Errorf("read account %q: %w", name, err)
	}
	return a, nil
}

// get returns what has a name below a prefix.
func get[T any](ctx context.Context, engine store.Engine, prefix, name string) (value T, err error) {
	k, err := key(prefix, name)
	if err != nil {
		return value, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	records, err := engine.Get(ctx, k)
	if err != nil {
		return value, err
	}
	if records[0].Version == 0 {
		return value, ErrNotFound
	}
	return value, decode(records[0], &value)
}

// PutAccount creates an account or replaces it. ErrLastAdmin if no account would
// be an admin; ErrTooMany if there are MaxAccounts others.
func (l *Ledger) PutAccount(ctx context.Context, act Act, a Account) error {
	k, err := key(keyAccount, a.Name)
	err = errors.Join(err, act.validate(), a.validate())
	if err == nil {
		err = l.change(ctx, nil, func(ctx context.Context, _ []store.Record) (*plan, error) {
			accounts, err := list[Account](ctx, l.engine, keyAccount)
			if err != nil {
				return nil, err
			}
			return act.putAccount(accounts, k, a)
		})
	}
	if err != nil {
		return fmt.Errorf("put account %q: %w", a.Name, err)
	}
	return nil
}

func (a *Act) putAccount(accounts []Account, key string, next Account) (*plan, error) {
	before, password := "", ""
	if next.Password != "" {
		password = "set"
	}
	others := slices.DeleteFunc(slices.Clone(accounts), func(b Account) bool { return b.Name == next.Name })
	if i := slices.IndexFunc(accounts, func(b Account) bool { return b.Name == next.Name }); i >= 0 {
		before = accounts[i].shown("")
		if password = ""; accounts[i].Password != next.Password {
			password = "changed"
		}
	}
	if len(others) >= MaxAccounts {
		return nil, fmt.Errorf("%w: there are %d accounts", ErrTooMany, len(accounts))
	}
	if !hasAdmin(append(others, next)) {
		return nil, ErrLastAdmin
	}
	entry := a.entry("account.put", []string{"account " + next.Name}, before, next.shown(password))
	return &plan{writes: []store.Write{put(key, next)}, entry: entry}, nil
}

func hasAdmin(accounts []Account) bool {
	return slices.ContainsFunc(accounts, func(a Account) bool { return a.Role == RoleAdmin })
}

// DeleteAccount deletes an account with its tokens and sessions. ErrNotFound if
// there is none, ErrLastAdmin if it is the only admin.
func (l *Ledger) DeleteAccount(ctx context.Context, act Act, name string) error {
	k, err := key(keyAccount, name)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err = errors.Join(err, act.validate()); err == nil {
		err = l.change(ctx, nil, func(ctx context.Context, _ []store.Record) (*plan, error) {
			accounts, err := list[Account](ctx, l.engine, keyAccount)
			if err != nil {
				return nil, err
			}
			i := slices.IndexFunc(accounts, func(a Account) bool { return a.Name == name })
			if i < 0 {
				return nil, ErrNotFound
			}
			entry := act.entry("account.delete", []string{"account " + name}, accounts[i].shown(""), "")
			if !hasAdmin(slices.Delete(accounts, i, i+1)) {
				return nil, ErrLastAdmin
			}
			writes, err := l.endAll(ctx, name)
			return &plan{writes: append(writes, store.Write{Key: k, Delete: true}), entry: entry}, err
		})
	}
	if err != nil {
		return fmt.Errorf("delete account %q: %w", name, err)
	}
	return nil
}

// atOnce is how many deletions leave room for the rest of a commit.
const atOnce = store.MaxWrites / 2

// endAll returns the deletions of an account's tokens and sessions. It makes
// them itself but for the last atOnce: with an account that is about to go they
// may go before.
func (l *Ledger) endAll(ctx context.Context, account string) ([]store.Write, error) {
	var ends []store.Write
	for _, prefix := range []string{keyToken, keySession} {
		records, err := l.engine.List(ctx, prefix, "", 0)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			var owned struct {
				Account string `json:"account"`
			}
			if err := decode(r, &owned); err != nil {
				return nil, err
			}
			if owned.Account == account {
				ends = append(ends, store.Write{Key: r.Key, Delete: true})
			}
		}
	}
	surplus := max(len(ends)-atOnce, 0)
	return ends[surplus:], l.write(ctx, ends[:surplus])
}
