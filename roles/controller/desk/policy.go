package desk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grl/limiter"
	"grl/policy"
	"grl/policy/policyfile"
	"grl/proto/access"
	"grl/store/ledger"
)

// PoliciesRequest asks for policy files to become the policies of those names.
type PoliciesRequest struct {
	By
	// Files are policy files; their names are shown in errors.
	Files []policyfile.Source
	// Base is the revision of the policies that the files were made from; nil: the
	// present one.
	Base   *uint64
	DryRun bool
	Reason string
}

// PolicyOutcome is what a change of policies did, or a dry run of it would do.
type PolicyOutcome struct {
	// Revision is the head of the policies now; of a dry run, the present one.
	Revision                ledger.Revision
	Changed                 bool
	Added, Removed, Updated []string // names, sorted
}

// ApplyPolicies makes policy files the policies of their names. An editor may
// change a policy that selects one service by name which that editor may change.
// The error is an *InvalidError, *ConflictError or *DeniedError, or one of the
// ledger.
func (d *Desk) ApplyPolicies(ctx context.Context, r PoliciesRequest) (PolicyOutcome, error) {
	if err := checkPolicyFiles(r.Files); err != nil {
		return PolicyOutcome{}, err
	}
	specs, err := policyfile.Load(r.Files)
	if err != nil {
		return PolicyOutcome{}, invalidFiles(err)
	}
	texts := make(map[string][]byte, len(specs))
	for _, f := range r.Files {
		spec, err := policyfile.Parse(f.Name, f.Data)
		if err != nil {
			return PolicyOutcome{}, invalidFiles(err)
		}
		texts[spec.Name] = f.Data
	}
	return d.changePolicies(ctx, policyChange{
		by: r.By, action: "policy.apply", reason: r.Reason, dryRun: r.DryRun,
		next: func(head ledger.PolicySet) (map[string][]byte, error) {
			if err := d.checkPolicyBase(ctx, r.Base, head, texts); err != nil {
				return nil, err
			}
			next := maps.Clone(head.Texts)
			maps.Copy(next, texts)
			return next, checkTogether(next, r.Files)
		},
	})
}

// DeletePolicy removes a policy. Errors are those of ApplyPolicies, and
// ErrNotFound.
func (d *Desk) DeletePolicy(ctx context.Context, by By, name, reason string) (PolicyOutcome, error) {
	return d.changePolicies(ctx, policyChange{
		by: by, action: "policy.delete", reason: reason,
		next: func(head ledger.PolicySet) (map[string][]byte, error) {
			if _, ok := head.Texts[name]; !ok {
				return nil, fmt.Errorf("policy %q: %w", clip(name), ErrNotFound)
			}
			next := maps.Clone(head.Texts)
			delete(next, name)
			return next, nil
		},
	})
}

// RollbackPolicies makes a revision of the policies that equals an older one. It
// needs a reason. Errors are those of ApplyPolicies, and ErrNotFound.
func (d *Desk) RollbackPolicies(ctx context.Context, by By, revision uint64, reason string) (PolicyOutcome, error) {
	if err := requireReason(reason); err != nil {
		return PolicyOutcome{}, err
	}
	if revision == 0 {
		return PolicyOutcome{}, invalid("revision", "is missing")
	}
	old, err := d.opts.Ledger.Policies(ctx, revision)
	if err != nil {
		return PolicyOutcome{}, err
	}
	return d.changePolicies(ctx, policyChange{
		by: by, action: "policy.rollback", reason: reason,
		next: func(ledger.PolicySet) (map[string][]byte, error) { return old.Texts, checkTogether(old.Texts, nil) },
	})
}

// checkPolicyFiles bounds policy files before they are read.
func checkPolicyFiles(files []policyfile.Source) error {
	if len(files) == 0 {
		return invalid("files", "there are none")
	}
	if len(files) > policyfile.MaxPolicies {
		return invalid("files", "%d files, at most %d", len(files), policyfile.MaxPolicies)
	}
	for i, f := range files {
		if what := checkFileName(f.Name); what != "" {
			return invalid(fmt.Sprintf("files[%d].name", i), "%s", what)
		}
	}
	return nil
}

// checkTogether makes sure that policies go together. Files have names of their
// own in errors, the others that of the policy.
func checkTogether(texts map[string][]byte, files []policyfile.Source) error {
	sources := slices.Clone(files)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		if !slices.ContainsFunc(files, func(f policyfile.Source) bool { return bytes.Equal(f.Data, text) }) {
			sources = append(sources, policyfile.Source{Name: "policy " + name, Data: text})
		}
	}
	if _, err := policyfile.Load(sources); err != nil {
		return invalidFiles(err)
	}
	return nil
}

// policyChange is a change of policies before it is compared with the head.
type policyChange struct {
	by     By
	action string // for the audit
	reason string
	dryRun bool
	// next returns the policies as they shall be.
	next func(head ledger.PolicySet) (map[string][]byte, error)
}

// changePolicies makes a change, anew if another one came first.
func (d *Desk) changePolicies(ctx context.Context, c policyChange) (PolicyOutcome, error) {
	if what := checkReason(c.reason); what != "" {
		return PolicyOutcome{}, invalid("reason", "%s", what)
	}
	if c.by.Person.Level < access.Editor {
		return PolicyOutcome{}, d.deny(ctx, c.by, c.action, nil, "changing policies needs the role editor")
	}
	for try := 1; ; try++ {
		out, err := d.attemptPolicies(ctx, c)
		if !errors.Is(err, ledger.ErrConflict) || try == maxTries {
			return out, err
		}
	}
}

func (d *Desk) attemptPolicies(ctx context.Context, c policyChange) (PolicyOutcome, error) {
	head, err := d.opts.Ledger.Policies(ctx, 0)
	if err != nil {
		return PolicyOutcome{}, err
	}
	next, err := c.next(head)
	if err != nil {
		return PolicyOutcome{}, err
	}
	out := comparePolicies(head.Texts, next)
	out.Revision = head.Revision
	if !out.Changed {
		return out, nil
	}
	if err := d.checkPolicyRights(ctx, c, head.Texts, next, out); err != nil || c.dryRun {
		return out, err
	}
	var subjects []string
	var before, after strings.Builder
	for _, name := range out.names() {
		subjects = append(subjects, "policy "+name)
		auditPolicy(&before, name, head.Texts[name])
		auditPolicy(&after, name, next[name])
	}
	out.Revision, err = d.opts.Ledger.ApplyPolicies(ctx, head.Revision.Number, c.by.act(c.reason, false), c.action, subjects, before.String(), after.String(), next)
	return out, err
}

func auditPolicy(into *strings.Builder, name string, text []byte) {
	if text != nil {
		fmt.Fprintf(into, "# %s\n%s\n", name, bytes.TrimSuffix(text, []byte("\n")))
	}
}

// comparePolicies says what differs between two sets of policies.
func comparePolicies(before, after map[string][]byte) PolicyOutcome {
	var out PolicyOutcome
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, ok := before[name]
		switch {
		case !ok:
			out.Added = append(out.Added, name)
		case !bytes.Equal(was, after[name]):
			out.Updated = append(out.Updated, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			out.Removed = append(out.Removed, name)
		}
	}
	out.Changed = len(out.names()) > 0
	return out
}

// names returns all policies that differ.
func (o *PolicyOutcome) names() []string { return slices.Concat(o.Added, o.Updated, o.Removed) }

// checkPolicyRights makes sure that the person may change each of the policies,
// as it is and as it shall be.
func (d *Desk) checkPolicyRights(ctx context.Context, c policyChange, before, after map[string][]byte, out PolicyOutcome) error {
	if c.by.Person.Level == access.Admin {
		return nil
	}
	revision, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	head, err := d.readHead(ctx, revision)
	if err != nil {
		return err
	}
	for _, name := range out.names() {
		for _, text := range [][]byte{before[name], after[name]} {
			if text != nil && !mayEditPolicy(c.by.Person, text, head) {
				return d.deny(ctx, c.by, c.action, []string{"policy " + name},
					"%s may not change the policy %s: it needs the right to change the service that the policy selects by its name, or the role admin", c.by.Person.Name, name)
			}
		}
	}
	return nil
}

// mayEditPolicy reports whether a person may change a policy: that of one
// service which the person may change.
func mayEditPolicy(p access.Person, text []byte, head *snapshot) bool {
	if p.Level == access.Admin {
		return true
	}
	spec, err := policyfile.Parse("policy", text)
	if err != nil {
		return false
	}
	service := string(spec.Match.Service)
	return service != "" && !strings.HasSuffix(service, "*") && p.MayEdit(service, head.owner(service))
}

// checkPolicyBase refuses files whose policies were changed since their base.
func (d *Desk) checkPolicyBase(ctx context.Context, base *uint64, head ledger.PolicySet, texts map[string][]byte) error {
	switch {
	case base == nil || *base == head.Revision.Number:
		return nil
	case *base > head.Revision.Number:
		return invalid("base", "%d is above the present revision of the policies, %d", *base, head.Revision.Number)
	}
	old := ledger.PolicySet{}
	if *base > 0 {
		var err error
		if old, err = d.opts.Ledger.Policies(ctx, *base); err != nil {
			return err
		}
	}
	var conflicts []Conflict
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if was, is := old.Texts[name], head.Texts[name]; !bytes.Equal(was, is) && !bytes.Equal(is, texts[name]) {
			conflicts = append(conflicts, Conflict{
				Bucket: "policy " + name, Base: *base, Revision: head.Revision,
				BaseText: string(was), TheirText: string(is), OurText: string(texts[name]),
			})
		}
	}
	if len(conflicts) == 0 {
		return nil
	}
	return &ConflictError{conflicts}
}

// Policy is one policy as it was written.
type Policy struct {
	Name string
	Text []byte
	// Spec is what it says; nil if this version cannot read it.
	Spec *policy.Spec
	// Buckets is how many of the present configuration it computes.
	Buckets int
}

// Policies returns the policies of a revision of theirs, by name; 0: the present
// one. ErrNotFound if there is no such revision.
func (d *Desk) Policies(ctx context.Context, revision uint64) (ledger.Revision, []Policy, error) {
	set, err := d.opts.Ledger.Policies(ctx, revision)
	if err != nil {
		return ledger.Revision{}, nil, err
	}
	var policies []Policy
	var specs []policy.Spec
	for _, name := range slices.Sorted(maps.Keys(set.Texts)) {
		p := Policy{Name: name, Text: set.Texts[name]}
		if spec, err := policyfile.Parse("policy "+name, p.Text); err == nil {
			p.Spec = &spec
			specs = append(specs, spec)
		}
		policies = append(policies, p)
	}
	counts, err := d.selected(ctx, specs)
	if err != nil {
		return ledger.Revision{}, nil, err
	}
	for i := range policies {
		policies[i].Buckets = counts[policies[i].Name]
	}
	return set.Revision, policies, nil
}

// selected counts the buckets that each policy computes, by its name.
func (d *Desk) selected(ctx context.Context, specs []policy.Spec) (map[string]int, error) {
	counts := make(map[string]int, len(specs))
	if len(specs) == 0 {
		return counts, nil
	}
	revision, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	head, err := d.readHead(ctx, revision)
	if err != nil {
		return nil, err
	}
	head.eachBucket(func(b *limiter.Bucket) {
		if spec := policyfile.Choose(specs, *b); spec != nil {
			counts[spec.Name]++
		}
	})
	return counts, nil
}

// eachBucket calls fn with all buckets of a configuration.
func (s *snapshot) eachBucket(fn func(*limiter.Bucket)) {
	for _, doc := range s.documents {
		for i := range doc.service.Buckets {
			fn(&doc.service.Buckets[i])
		}
	}
}
