package desk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grl/policy/policyfile"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

// policyFile returns a policy file of buckets of a service.
func policyFile(name, service, more string) policyfile.Source {
	return policyfile.Source{Name: name + ".yaml", Data: []byte("name: " + name + "\nkind: peak\nmatch: {service: " + service + "}\n" + more)}
}

func (r *rig) applyPolicies(by desk.By, base *uint64, files ...policyfile.Source) (desk.PolicyOutcome, error) {
	return r.ApplyPolicies(r.Context(), desk.PoliciesRequest{By: by, Files: files, Base: base, Reason: "nightly"})
}

func TestPolicies(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=50"), file("search", "web=10"))
	night := policyFile("night", "payments", "")
	out, err := r.ApplyPolicies(t.Context(), desk.PoliciesRequest{By: admin, Files: []policyfile.Source{night}, DryRun: true})
	if err != nil || !out.Changed || out.Revision.Number != 0 || !slices.Equal(out.Added, []string{"night"}) {
		t.Fatalf("dry run: %+v, %v", out, err)
	}
	out, err = r.applyPolicies(admin, nil, night, policyFile("all", `"*"`, "mode: apply\n"))
	if err != nil || out.Revision.Number != 1 || out.Revision.Author != "ada" || len(out.Added) != 2 {
		t.Fatalf("apply: %+v, %v", out, err)
	}
	if out, err = r.applyPolicies(admin, nil, night); err != nil || out.Changed || out.Revision.Number != 1 {
		t.Errorf("the same again: %+v, %v", out, err)
	}
	revision, policies, err := r.Policies(t.Context(), 0)
	if err != nil || revision.Number != 1 || len(policies) != 2 || policies[0].Name != "all" || policies[0].Buckets != 1 ||
		policies[1].Buckets != 2 || string(policies[1].Text) != string(night.Data) {
		t.Errorf("policies: %+v, %v", policies, err)
	}
	base := uint64(1)
	if out, err = r.applyPolicies(admin, &base, policyFile("night", "payments", "floor: 5\n")); err != nil || !slices.Equal(out.Updated, []string{"night"}) {
		t.Errorf("update: %+v, %v", out, err)
	}
	_, err = r.applyPolicies(admin, &base, policyFile("night", "payments", "floor: 6\n"))
	if c := want[*desk.ConflictError](t, err).Conflicts; len(c) != 1 || !strings.Contains(c[0].TheirText, "floor: 5") || c[0].Revision.Number != 2 {
		t.Errorf("conflicts: %+v", c)
	}
	if out, err = r.DeletePolicy(t.Context(), admin, "all", ""); err != nil || !slices.Equal(out.Removed, []string{"all"}) {
		t.Errorf("delete: %+v, %v", out, err)
	}
	if _, err = r.DeletePolicy(t.Context(), admin, "all", ""); !errors.Is(err, desk.ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
	if out, err = r.RollbackPolicies(t.Context(), admin, 1, "no"); err != nil || out.Revision.Number != 4 || !slices.Equal(out.Added, []string{"all"}) || !slices.Equal(out.Updated, []string{"night"}) {
		t.Errorf("rollback: %+v, %v", out, err)
	}
	if _, err = r.RollbackPolicies(t.Context(), admin, 9, "no"); !errors.Is(err, desk.ErrNotFound) {
		t.Errorf("rollback to what is not there: %v", err)
	}
	entries, err := r.ledger.Audit(t.Context(), 0, 4, ledger.Filter{Subject: "policy night"})
	if err != nil || len(entries) != 3 || entries[0].Action != "policy.rollback" || entries[1].Action != "policy.apply" ||
		!strings.Contains(entries[1].After, "floor: 5") || strings.Contains(entries[1].Before, "floor") {
		t.Errorf("audit: %+v, %v", entries, err)
	}
}

func TestPoliciesRefused(t *testing.T) {
	r := newRig(t)
	if _, err := r.applyPolicies(admin, nil, policyFile("night", "payments", "")); err != nil {
		t.Fatal(err)
	}
	above := uint64(7)
	tests := []struct {
		name  string
		base  *uint64
		files []policyfile.Source
		place string
	}{
		{"no files", nil, nil, "files"},
		{"a file without a name", nil, []policyfile.Source{{Data: []byte("name: x\n")}}, "files[0].name"},
		{"a key that is not known", nil, []policyfile.Source{policyFile("x", "payments", "colour: red\n")}, "x.yaml"},
		{"one policy twice", nil, []policyfile.Source{policyFile("x", "a", ""), policyFile("x", "b", "")}, "x.yaml"},
		{"the match of another one", nil, []policyfile.Source{policyFile("x", "payments", "")}, ""},
		{"a base to come", &above, []policyfile.Source{policyFile("x", "a", "")}, "base"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.applyPolicies(admin, tt.base, tt.files...)
			if p := want[*desk.InvalidError](t, err).Problems; tt.place != "" && p[0].Where != tt.place {
				t.Errorf("problems = %v, want one at %s", p, tt.place)
			}
		})
	}
}

// An editor changes the policies of own services alone, and takes over none.
func TestRightsOfPolicies(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("search", "web=10"), file("mail", "web=10"))
	if _, err := r.applyPolicies(admin, nil, policyFile("mail", "mail", "")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		by   desk.By
		file policyfile.Source
		may  bool
	}{
		{"a viewer", viewer, policyFile("x", "payments", ""), false},
		{"own by name", editor, policyFile("x", "payments", ""), true},
		{"own by its owner", editor, policyFile("y", "search", ""), true},
		{"of others", editor, policyFile("z", "mail, bucket: web", ""), false},
		{"of others, taken over", editor, policyFile("mail", "payments, bucket: web", ""), false},
		{"of all", editor, policyFile("z", `"*"`, ""), false},
		{"of several", editor, policyFile("z", `"pay*"`, ""), false},
		{"of any service", editor, policyfile.Source{Name: "z.yaml", Data: []byte("name: z\nkind: peak\nmatch: {caller: app}\n")}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.applyPolicies(tt.by, nil, tt.file)
			if !tt.may {
				want[*desk.DeniedError](t, err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	_, err := r.DeletePolicy(t.Context(), editor, "mail", "")
	want[*desk.DeniedError](t, err)
	if _, err := r.DeletePolicy(t.Context(), editor, "x", ""); err != nil {
		t.Error(err)
	}
}

func TestRequestRun(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("mail", "web=10"))
	if _, err := r.applyPolicies(admin, nil, policyFile("night", "payments", ""), policyFile("all", `"*"`, "")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		r      desk.RunRequest
		denied bool
	}{
		{"all, by an admin", desk.RunRequest{By: admin}, false},
		{"all, by an editor", desk.RunRequest{By: editor}, true},
		{"all, dry, by an editor", desk.RunRequest{By: editor, DryRun: true}, false},
		{"dry, by a viewer", desk.RunRequest{By: viewer, DryRun: true}, true},
		{"own service", desk.RunRequest{By: editor, Service: "payments"}, false},
		{"service of others", desk.RunRequest{By: editor, Service: "mail"}, true},
		{"own policy", desk.RunRequest{By: editor, Policy: "night"}, false},
		{"policy of all", desk.RunRequest{By: editor, Policy: "all"}, true},
	}
	waiting := 0
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, err := r.RequestRun(t.Context(), tt.r)
			if tt.denied {
				want[*desk.DeniedError](t, err)
				return
			}
			waiting++
			requests, listErr := r.ledger.Requests(t.Context())
			if err != nil || listErr != nil || len(requests) != waiting || requests[waiting-1].ID != id || requests[waiting-1].Author != tt.r.Person.Name {
				t.Errorf("requests %+v, %v, %v", requests, err, listErr)
			}
		})
	}
	for _, gone := range []desk.RunRequest{{By: admin, Service: "nowhere"}, {By: admin, Policy: "none"}} {
		if _, err := r.RequestRun(t.Context(), gone); !errors.Is(err, desk.ErrNotFound) {
			t.Errorf("%+v: %v", gone, err)
		}
	}
}
