package account

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// accountRow is an account, ready to print.
type accountRow struct {
	Name, Role, May string
	OIDC            bool // signs in through the provider
	Path            string
	Key             string // the name, for forms
	Sessions        int
	Seen            format.Stamp
	Never           bool // seen
}

// accountForm creates an account, or changes one.
type accountForm struct {
	Refusal                                *page.Refusal
	New                                    bool
	Key                                    string // the name of the one that is changed
	OIDC, Own, Last                        bool   // the person's own; the last admin, which stays
	Name, Role, Services, Owners, Password page.Field
	Sure                                   page.Field // to delete it
	Roles                                  []page.Choice
}

// roleChoices explains the roles.
var roleChoices = []page.Choice{
	{Value: "viewer", Name: "viewer", Note: "looks"},
	{Value: "editor", Name: "editor", Note: "changes own services"},
	{Value: "admin", Name: "admin", Note: "everything"},
}

func newAccountRow(a *grlv1.Account, all listed, now time.Time) accountRow {
	r := accountRow{
		Name: format.Printable(a.GetName()), Key: a.GetName(), Role: roleText(a.GetRole()), OIDC: a.GetOidc(), May: may(a),
		Path: "/access/account?" + url.Values{"name": {a.GetName()}}.Encode(),
	}
	seen := int64(0)
	for _, n := range all.sessions {
		if n.GetAccount() == a.GetName() {
			r.Sessions++
			seen = max(seen, n.GetUsedAtMs())
		}
	}
	for _, t := range all.tokens {
		if t.GetAccount() == a.GetName() {
			seen = max(seen, t.GetUsedAtMs())
		}
	}
	r.Seen, r.Never = stamp(seen, now), seen == 0
	return r
}

// may says what an account may change.
func may(a *grlv1.Account) string {
	switch {
	case a.GetRole() == grlv1.AccountRole_ACCOUNT_ROLE_ADMIN:
		return "everything"
	case a.GetRole() != grlv1.AccountRole_ACCOUNT_ROLE_EDITOR || len(a.GetServices())+len(a.GetOwners()) == 0:
		return "nothing"
	}
	names := slices.Clone(a.GetServices())
	for _, o := range a.GetOwners() {
		names = append(names, "all of "+o)
	}
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(names[:most], format.Count(more)+" more")
	}
	return format.Printable(strings.Join(names, ", "))
}

// serveAccount shows the form of an account, or of a new one.
func (s site) serveAccount(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		f := newAccountForm("", "viewer", "", "")
		f.New = true
		s.renderAccount(w, r, http.StatusOK, f)
		return
	}
	all, err := s.list(r)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	f, ok := formOf(name, all.accounts)
	if !ok {
		s.Fail(w, r, connect.NewError(connect.CodeNotFound, errors.New("there is no such account")))
		return
	}
	s.renderAccount(w, r, http.StatusOK, f)
}

// formOf returns the form of an account as it is; false: there is none.
func formOf(name string, accounts []*grlv1.Account) (accountForm, bool) {
	i := slices.IndexFunc(accounts, func(a *grlv1.Account) bool { return a.GetName() == name })
	if i < 0 {
		return accountForm{}, false
	}
	a := accounts[i]
	f := newAccountForm(name, roleText(a.GetRole()), strings.Join(a.GetServices(), " "), strings.Join(a.GetOwners(), "\n"))
	f.OIDC = a.GetOidc()
	f.Last = a.GetRole() == grlv1.AccountRole_ACCOUNT_ROLE_ADMIN && !slices.ContainsFunc(accounts, func(o *grlv1.Account) bool {
		return o.GetName() != name && o.GetRole() == grlv1.AccountRole_ACCOUNT_ROLE_ADMIN
	})
	return f, true
}

func newAccountForm(name, role, services, owners string) accountForm {
	return accountForm{
		Key:      name,
		Name:     page.Field{Name: "name", Label: "Account", Value: name, Max: 64, Required: true, Hint: "Lower-case letters, digits and . _ @ -"},
		Role:     page.Field{Name: "role", Label: "Role", Value: role},
		Services: page.Field{Name: "services", Label: "Services", Value: services, Max: 64 << 10, Rows: 2, Hint: "Of an editor: those whose limits it may change, with spaces or lines between."},
		Owners:   page.Field{Name: "owners", Label: "Owners", Value: owners, Max: 64 << 10, Rows: 2, Hint: "Of an editor: it may change what belongs to them. One on each line."},
		Password: page.Field{Name: "password", Label: "Password", Type: "password", Complete: "new-password", Hint: "At least 12 characters."},
		Sure:     page.Field{Name: "sure"},
		Roles:    roleChoices,
	}
}

// putAccount creates an account, or changes one.
func (s site) putAccount(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	get := r.PostForm.Get
	_, err := s.People.Service().PutAccount(r.Context(), &grlv1.PutAccountRequest{
		Account: &grlv1.Account{
			Name: get("name"), Role: roleOf(get("role")), Services: strings.Fields(get("services")), Owners: lines(get("owners")),
		},
		Password: get("password"),
	})
	if err != nil {
		f := newAccountForm(get("name"), get("role"), get("services"), get("owners"))
		f.New = get("new") == "yes"
		s.refuseAccount(w, r, f, err)
		return
	}
	http.Redirect(w, r, "/access/account?"+url.Values{"name": {get("name")}, "saved": {"yes"}}.Encode(), http.StatusSeeOther)
}

// deleteAccount asks for a tick, since it ends what programs sign in with too.
func (s site) deleteAccount(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	name := r.PostForm.Get("name")
	var err error
	if r.PostForm.Get("sure") == "yes" {
		if _, err = s.People.Service().DeleteAccount(r.Context(), &grlv1.DeleteAccountRequest{Name: name}); err == nil {
			http.Redirect(w, r, "/access?"+url.Values{"deleted": {name}}.Encode(), http.StatusSeeOther)
			return
		}
	}
	all, listErr := s.list(r)
	f, ok := formOf(name, all.accounts)
	switch {
	case listErr != nil:
		s.Fail(w, r, listErr)
	case !ok:
		s.Fail(w, r, connect.NewError(connect.CodeNotFound, errors.New("there is no such account")))
	case err != nil:
		s.refuseAccount(w, r, f, err)
	default:
		f.Sure.Error = "Tick this to delete it."
		f.Refusal = &page.Refusal{Title: "Not deleted: it was not ticked"}
		s.renderAccount(w, r, http.StatusUnprocessableEntity, f)
	}
}

func (s site) refuseAccount(w http.ResponseWriter, r *http.Request, f accountForm, err error) {
	refusal := s.Refusal(r, err)
	f.Refusal = &refusal
	s.renderAccount(w, r, refusal.Status, f)
}

func (s site) renderAccount(w http.ResponseWriter, r *http.Request, status int, f accountForm) {
	title := format.Printable(f.Key)
	if f.New {
		title = "New account"
	}
	p := s.Page(r, title, "/access")
	p.AsOf = format.Stamp{}
	p.Crumbs = []page.Crumb{{Name: "Access", Path: "/access"}, {Name: title}}
	f.Own = who(r).Name == f.Key
	if !f.New {
		f.Password.Label, f.Password.Hint = "New password", "At least 12 characters, and ends its sessions. Empty: as before."
	}
	if r.URL.Query().Get("saved") == "yes" && r.Method == http.MethodGet {
		p.Notices = append(p.Notices, page.Notice{Kind: "good", Title: "Saved", Text: "The account is as shown.", Link: page.Crumb{Name: "All accounts", Path: "/access"}})
	}
	s.Render(w, r, status, accountPage(p, f))
}

// lines returns the lines of a text that are not blank, without spaces around.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
