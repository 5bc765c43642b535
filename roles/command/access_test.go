package command_test

import (
	"os"
	"strings"
	"testing"
)

func TestAccess(t *testing.T) {
	control(t)
	writeFile(t, "payments.yaml", limits)
	writeFile(t, "password", "correct horse battery staple\n")
	expect(t, 0, "everyone is admin: there is no account yet; grl account add makes the first one\n", "whoami")
	expect(t, 0, "account ann is admin\n", "account", "add", "ann", "--role", "admin", "--password-file", "password")
	r := grl(t, "apply", "-f", "payments.yaml")
	if r.code != 1 || !strings.Contains(r.errOut, "grl login") {
		t.Errorf("apply without a login: %+v", r)
	}
	writeFile(t, "wrong", "incorrect horse")
	r = grl(t, "login", "ann", "--password-file", "wrong")
	if r.code != 1 || strings.Contains(r.errOut, "incorrect horse") {
		t.Errorf("login with a wrong password: %+v", r)
	}
	expect(t, 0, "signed in at URL as ann, until TIME at the latest\n", "login", "ann", "--password-file", "password")
	expect(t, 0, "ann, admin, by session\n", "whoami")
	expect(t, 0, "account ben is editor\n", "account", "add", "ben", "--role", "editor", "--service", "orders", "--owner", "team-orders", "--password-file", "password")
	expect(t, 0, `account  role    services  owners       signs in by  created
ann      admin   -         -            password     TIME
ben      editor  orders    team-orders  password     TIME
`, "account", "list")
	r = grl(t, "token", "create", "ci", "--role", "viewer", "--for", "30d")
	if r.code != 0 || !strings.HasPrefix(r.out, "grl_") || strings.Count(r.out, "\n") != 1 || !strings.Contains(r.errOut, "not shown again") {
		t.Errorf("token create: %+v", r)
	}
	writeFile(t, "token", r.out)
	expect(t, 0, "added    …", "apply", "-f", "payments.yaml")
	expect(t, 0, "ann, viewer, by token\n", "whoami", "--token-file", "token")
	change(t, "payments.yaml", "1200", "1300")
	if r := grl(t, "apply", "-f", "payments.yaml", "--token-file", "token"); r.code != 1 || !strings.HasPrefix(r.errOut, "grl: ") {
		t.Errorf("apply as a viewer: %+v", r)
	}
	secret := strings.TrimSpace(r.out)
	list := grl(t, "token", "list")
	if list.code != 0 || strings.Contains(list.out, secret) || !strings.Contains(list.out, "ci    ann      viewer") {
		t.Errorf("token list: %+v", list)
	}
	id := strings.Split(secret, "_")[1]
	expect(t, 0, "revoked token "+id+"\n", "token", "revoke", id)
	t.Setenv("GRL_TOKEN", secret)
	if r := grl(t, "whoami"); r.code != 1 || strings.Contains(r.errOut, secret) {
		t.Errorf("whoami with a revoked token: %+v", r)
	}
	if err := os.Unsetenv("GRL_TOKEN"); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, "removed account ben, its sessions and its tokens\n", "account", "remove", "ben")
	expect(t, 1, "grl: …", "account", "remove", "ann")
	expect(t, 0, "signed out at URL\n", "logout")
	expect(t, 1, "grl: …", "whoami")
}
