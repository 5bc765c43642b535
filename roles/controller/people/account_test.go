package people

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"grl/store/ledger"
)

func TestAccountsThatAreRefused(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	_, root := r.login(t, "root", rootPassword)
	many := slices.Repeat([]string{"pay"}, MostServices+1)
	for _, tt := range []struct {
		name     string
		account  ledger.Account
		password string
	}{
		{"no name", ledger.Account{Role: "viewer"}, adaPassword},
		{"a long name", ledger.Account{Name: strings.Repeat("a", maxName+1), Role: "viewer"}, adaPassword},
		{"upper case", ledger.Account{Name: "Ada", Role: "viewer"}, adaPassword},
		{"a look-alike", ledger.Account{Name: "аda", Role: "viewer"}, adaPassword}, // a Cyrillic letter
		{"a path", ledger.Account{Name: "../root", Role: "viewer"}, adaPassword},
		{"a control character", ledger.Account{Name: "ada\x00", Role: "viewer"}, adaPassword},
		{"a dot in front", ledger.Account{Name: ".ada", Role: "viewer"}, adaPassword},
		{"a name of the provider", ledger.Account{Name: "oidc:ada@example.com", Role: "viewer"}, adaPassword},
		{"everyone's name", ledger.Account{Name: "local", Role: "viewer"}, adaPassword},
		{"nobody's name", ledger.Account{Name: "nobody", Role: "viewer"}, adaPassword},
		{"no role", ledger.Account{Name: "ada"}, adaPassword},
		{"an unknown role", ledger.Account{Name: "ada", Role: "owner"}, adaPassword},
		{"a viewer of services", ledger.Account{Name: "ada", Role: "viewer", Services: []string{"pay"}}, adaPassword},
		{"an admin of owners", ledger.Account{Name: "ada", Role: "admin", Owners: []string{"team"}}, adaPassword},
		{"a service that is no name", ledger.Account{Name: "ada", Role: "editor", Services: []string{"*"}}, adaPassword},
		{"an empty owner", ledger.Account{Name: "ada", Role: "editor", Owners: []string{""}}, adaPassword},
		{"an owner of two lines", ledger.Account{Name: "ada", Role: "editor", Owners: []string{"a\nb"}}, adaPassword},
		{"many services", ledger.Account{Name: "ada", Role: "editor", Services: many}, adaPassword},
		{"many owners", ledger.Account{Name: "ada", Role: "editor", Owners: many}, adaPassword},
		{"no password", ledger.Account{Name: "ada", Role: "viewer"}, ""},
		{"a short password", ledger.Account{Name: "ada", Role: "viewer"}, "eleven char"},
		{"a short password of one that exists", ledger.Account{Name: "root", Role: "admin"}, "eleven char"},
	} {
		_, err := r.PutAccount(root, tt.account, tt.password)
		wantCode(t, tt.name, err, connect.CodeInvalidArgument)
	}
	if all, err := r.Accounts(root); err != nil || len(all) != 1 {
		t.Errorf("%d accounts, %v; want root alone", len(all), err)
	}
}

func TestTheLastAdminStays(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "editor", Services: []string{"pay"}})
	_, root := r.login(t, "root", rootPassword)
	_, err := r.PutAccount(root, ledger.Account{Name: "root", Role: "viewer"}, "")
	wantCode(t, "demoting", err, connect.CodeFailedPrecondition)
	wantCode(t, "deleting", r.DeleteAccount(root, "root"), connect.CodeFailedPrecondition)
	if _, err := r.PutAccount(root, ledger.Account{Name: "ada", Role: "admin"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteAccount(root, "root"); err != nil {
		t.Errorf("deleting the second last: %v", err)
	}
	_, err = r.PutAccount(root, ledger.Account{Name: "eve", Role: "viewer"}, adaPassword)
	if err != nil {
		t.Errorf("a call that was let in before: %v", err)
	}
}

func TestWhoChangesAccounts(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "editor", Services: []string{"pay"}})
	_, ada := r.login(t, "ada", adaPassword)
	_, err := r.PutAccount(ada, ledger.Account{Name: "ada", Role: "admin"}, "")
	wantCode(t, "an editor that makes itself admin", err, connect.CodePermissionDenied)
	wantCode(t, "an editor that deletes", r.DeleteAccount(ada, "root"), connect.CodePermissionDenied)
	wantCode(t, "nobody that deletes", r.DeleteAccount(calling(t, "192.0.2.1", nil), "root"), connect.CodeUnauthenticated)
	own, err := r.Accounts(ada)
	if err != nil || len(own) != 1 || own[0].Name != "ada" {
		t.Errorf("an editor sees %+v, %v", own, err)
	}
	_, root := r.login(t, "root", rootPassword)
	wantCode(t, "deleting one that there is not", r.DeleteAccount(root, "eve"), connect.CodeNotFound)
	wantCode(t, "deleting nonsense", r.DeleteAccount(root, "../../\x00"), connect.CodeNotFound)
}

// Without a password the old one stays.
func TestPutAccountKeepsThePassword(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "viewer"})
	_, root := r.login(t, "root", rootPassword)
	if _, err := r.PutAccount(root, ledger.Account{Name: "ada", Role: "editor", Owners: []string{"team a"}}, ""); err != nil {
		t.Fatal(err)
	}
	if _, ctx := r.login(t, "ada", adaPassword); ctx == nil {
		t.Error("the password is gone")
	}
}

func TestAuditOfAccess(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	bearer, _ := r.login(t, "root", rootPassword)
	if err := r.Logout(r.with(t, bearer)); err != nil {
		t.Fatal(err)
	}
	if err := r.Logout(calling(t, "192.0.2.1", nil)); err != nil {
		t.Errorf("logout of nobody: %v", err)
	}
	for action, actor := range map[string]string{"account.put": "local", "login": "root", "session.end": "root"} {
		entries := r.entries(t, action)
		if len(entries) != 1 || entries[0].Actor != actor || entries[0].From == "" || entries[0].RequestID != "r1" {
			t.Errorf("%s: %+v, want one by %s with address and request", action, entries, actor)
		}
	}
}
