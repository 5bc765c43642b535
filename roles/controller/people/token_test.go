package people

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	"grl/store/ledger"
)

func TestTokenLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.put(t)
		_, root := r.login(t, "root", rootPassword)
		made, secret, err := r.CreateToken(root, ledger.Token{Name: "ci", Role: "viewer"}, 0)
		if err != nil || made.ExpiresAt.Sub(made.CreatedAt) != DefaultTokenLife || !made.UsedAt.IsZero() {
			t.Fatalf("token %+v, %v", made, err)
		}
		time.Sleep(time.Hour)
		r.with(t, secret)
		kept, err := r.ledger.Token(t.Context(), made.ID)
		if err != nil || !kept.UsedAt.Equal(time.Now().Truncate(time.Minute)) {
			t.Errorf("last use %v, %v; want now, to the minute", kept.UsedAt, err)
		}
		time.Sleep(time.Until(made.ExpiresAt))
		r.wantGone(t, "after 90 days", secret)
	})
}

func TestRevokedTokenEndsAtOnce(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	_, root := r.login(t, "root", rootPassword)
	made, secret, err := r.CreateToken(root, ledger.Token{Name: "ci", Role: "viewer"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.with(t, secret)
	if err := r.RevokeToken(root, made.ID); err != nil {
		t.Fatal(err)
	}
	r.wantGone(t, "at once", secret)
	wantCode(t, "a second time", r.RevokeToken(root, made.ID), connect.CodeNotFound)
}

// A token may at most what its account may, whatever was asked for, and at most
// what it was made for.
func TestRightsOfTokens(t *testing.T) {
	editor := ledger.Account{Name: "ada", Role: "editor", Services: []string{"pay", "search"}, Owners: []string{"team-a"}}
	for _, tt := range []struct {
		name    string
		account ledger.Account
		token   ledger.Token
		want    access.Person // without name
		code    connect.Code  // of a refusal
	}{
		{"a viewer of an editor", editor, ledger.Token{Role: "viewer"}, access.Person{Level: access.Viewer}, 0},
		{
			"an editor", editor,
			ledger.Token{Role: "editor"},
			access.Person{Level: access.Editor, Services: []string{"pay", "search"}, Owners: []string{"team-a"}},
			0,
		},
		{
			"an editor of one service", editor,
			ledger.Token{Role: "editor", Services: []string{"pay"}},
			access.Person{Level: access.Editor, Services: []string{"pay"}},
			0,
		},
		{"an editor of somebody else's service", editor, ledger.Token{Role: "editor", Services: []string{"pay", "ledger"}}, access.Person{}, connect.CodePermissionDenied},
		{"an admin of an editor", editor, ledger.Token{Role: "admin"}, access.Person{}, connect.CodePermissionDenied},
		{"an editor of a viewer", ledger.Account{Name: "ada", Role: "viewer"}, ledger.Token{Role: "editor"}, access.Person{}, connect.CodePermissionDenied},
		{"no role", editor, ledger.Token{}, access.Person{}, connect.CodeInvalidArgument},
		{"a viewer of services", editor, ledger.Token{Role: "viewer", Services: []string{"pay"}}, access.Person{}, connect.CodeInvalidArgument},
		{
			"an editor of an admin",
			ledger.Account{Name: "ada", Role: "admin"},
			ledger.Token{Role: "editor", Services: []string{"pay"}},
			access.Person{Level: access.Editor, Services: []string{"pay"}},
			0,
		},
		{"an editor of an admin, of nothing", ledger.Account{Name: "ada", Role: "admin"}, ledger.Token{Role: "editor"}, access.Person{}, connect.CodeInvalidArgument},
		{"a hostile service", editor, ledger.Token{Role: "editor", Services: []string{"pay\n"}}, access.Person{}, connect.CodeInvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.put(t, tt.account)
			_, ada := r.login(t, "ada", adaPassword)
			tt.token.Name = "ci"
			_, secret, err := r.CreateToken(ada, tt.token, time.Hour)
			if tt.code != 0 {
				wantCode(t, "CreateToken", err, tt.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Name, tt.want.By = "ada", "token"
			if p, err := r.Person(t.Context(), secret, ""); err != nil || !reflect.DeepEqual(p, tt.want) {
				t.Errorf("person %+v, %v; want %+v", p, err, tt.want)
			}
		})
	}
}

// When the account may less, so may its tokens, at once.
func TestTokensFollowTheAccount(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "editor", Services: []string{"pay", "search"}})
	_, ada := r.login(t, "ada", adaPassword)
	_, secret, err := r.CreateToken(ada, ledger.Token{Name: "ci", Role: "editor", Services: []string{"pay", "search"}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, root := r.login(t, "root", rootPassword)
	for _, tt := range []struct {
		account ledger.Account
		level   access.Level
		pay     bool
	}{
		{ledger.Account{Name: "ada", Role: "editor", Services: []string{"search"}}, access.Editor, false},
		{ledger.Account{Name: "ada", Role: "viewer"}, access.Viewer, false},
		{ledger.Account{Name: "ada", Role: "admin"}, access.Editor, true},
	} {
		if _, err := r.PutAccount(root, tt.account, ""); err != nil {
			t.Fatal(err)
		}
		p, err := r.Person(t.Context(), secret, "")
		if err != nil || p.Level != tt.level || p.MayEdit("pay", "") != tt.pay || p.MayEdit("ledger", "") {
			t.Errorf("account %+v: token %+v, %v", tt.account, p, err)
		}
	}
	if err := r.DeleteAccount(root, "ada"); err != nil {
		t.Fatal(err)
	}
	r.wantGone(t, "the token of a deleted account", secret)
}

func TestWhoMakesTokens(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "viewer"}, ledger.Account{Name: "eve", Role: "editor", Services: []string{"pay"}})
	_, root := r.login(t, "root", rootPassword)
	_, eve := r.login(t, "eve", adaPassword)
	viewer := ledger.Token{Name: "ci", Role: "viewer"}
	create := func(t *testing.T, by string) string {
		t.Helper()
		token := viewer
		token.Account, token.Role = by, map[string]string{"eve": "editor", "root": "admin"}[by]
		_, secret, err := r.CreateToken(root, token, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	ofEve, ofRoot := r.with(t, create(t, "eve")), r.with(t, create(t, "root"))

	other := viewer
	other.Account = "ada"
	_, _, err := r.CreateToken(eve, other, time.Hour)
	wantCode(t, "an editor for somebody else", err, connect.CodePermissionDenied)
	_, _, err = r.CreateToken(ofEve, viewer, time.Hour)
	wantCode(t, "an editor's token", err, connect.CodePermissionDenied)
	_, _, err = r.CreateToken(calling(t, "192.0.2.1", nil), viewer, time.Hour)
	wantCode(t, "nobody", err, connect.CodeUnauthenticated)
	_, _, err = r.CreateToken(open(t), viewer, time.Hour)
	wantCode(t, "for an account that there is not", err, connect.CodeNotFound)
	if _, _, err = r.CreateToken(ofRoot, other, time.Hour); err != nil {
		t.Errorf("an admin's token for somebody else: %v", err)
	}
	for _, life := range []time.Duration{-time.Second, time.Second, MaxTokenLife + time.Second} {
		_, _, err = r.CreateToken(root, viewer, life)
		wantCode(t, "a life of "+life.String(), err, connect.CodeInvalidArgument)
	}
	for _, name := range []string{"", "two\nlines", "\xff", string(make([]byte, maxName+1))} {
		_, _, err = r.CreateToken(root, ledger.Token{Name: name, Role: "viewer"}, time.Hour)
		wantCode(t, "a name", err, connect.CodeInvalidArgument)
	}
}

func TestTokensOfOthers(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "viewer"})
	_, root := r.login(t, "root", rootPassword)
	_, ada := r.login(t, "ada", adaPassword)
	ofRoot, secret, err := r.CreateToken(root, ledger.Token{Name: "ci", Role: "admin"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.CreateToken(ada, ledger.Token{Name: "mine", Role: "viewer"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	own, err := r.Tokens(ada)
	if err != nil || len(own) != 1 || own[0].Name != "mine" || own[0].Hash != nil {
		t.Errorf("a viewer sees %+v, %v", own, err)
	}
	if all, err := r.Tokens(root); err != nil || len(all) != 2 || all[0].Hash != nil {
		t.Errorf("an admin sees %+v, %v", all, err)
	}
	wantCode(t, "revoking somebody else's", r.RevokeToken(ada, ofRoot.ID), connect.CodeNotFound)
	wantCode(t, "revoking nonsense", r.RevokeToken(root, "../account/root"), connect.CodeInvalidArgument)
	r.with(t, secret)
}
