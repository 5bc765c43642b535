package command

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"grl/limiter/limitsfile"
	"grl/limiter/yamlfile"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

// Policy returns the command that changes the policies by which limits are
// computed.
func Policy() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Change the policies by which limits are computed",
		Long: `Change the policies by which the configurator computes limits. They have revisions
of their own: grl policy revisions lists them, and grl get policies what holds. The
limits that a policy has set stay when it is changed or deleted.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return wrongUse(errors.New("name what to do: apply, delete, revisions or rollback; grl get policies lists them"))
		},
	}
	call.connects(cmd)
	cmd.AddCommand(applyPolicies(&call), deletePolicy(&call), policyRevisions(&call), rollbackPolicies(&call))
	return cmd
}

func applyPolicies(call *calling) *cobra.Command {
	var paths []string
	var base uint64
	request := &grlv1.ApplyPoliciesRequest{}
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR...",
		Short: "Make policy files the policies of those names",
		Long: `Make policy files the policies of the names they have: all of them or, if anything
does not hold, none. Other policies stay as they are. Applying the same files again
changes nothing.

With --base, which names the revision of the policies that the files were made from,
a policy that somebody else has changed since is a conflict.`,
		Example: `  grl policy apply -f policies/ --dry-run
  grl policy apply -f nightly.yaml --reason "a floor for night hours"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if request.Files, err = readPolicies(paths); err != nil {
				return err
			}
			if cmd.Flags().Changed("base") {
				request.Base = &base
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Policy.ApplyPolicies(remote.WithTimeout(cmd.Context(), applyTimeout), request)
			if err != nil {
				return refusedDryRun(err, request.GetDryRun())
			}
			return printPolicies(cmd, call, answer.GetOutcome(), request.GetDryRun(), "applied:")
		},
	}
	call.prints(cmd)
	cmd.Flags().StringSliceVarP(&paths, "filename", "f", nil, "policy `file`, or directory of them; several by repeating")
	cmd.Flags().Uint64Var(&base, "base", 0, "`revision` of the policies that the files were made from")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "check and compare, change nothing")
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the audit")
	return cmd
}

// readPolicies reads the policy files that paths name, without looking into them.
func readPolicies(paths []string) ([]*grlv1.LimitsFile, error) {
	if len(paths) == 0 {
		return nil, wrongUse(errors.New("no policy files: name a file or directory with -f"))
	}
	sources, err := readSources(paths, "policy files")
	if err != nil {
		return nil, err
	}
	var errs limitsfile.Errors
	for _, s := range sources {
		if !policyfile.Is(s.Data) && yamlfile.HasKey(s.Data, "service") {
			errs = append(errs, &limitsfile.Error{File: s.Name, Found: "a limits file", Expected: "a policy file (grl apply -f takes limits files)"})
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return filesOf(sources), nil
}

// readSources reads what paths name; what says which kind of files.
func readSources(paths []string, what string) ([]limitsfile.Source, error) {
	var sources []limitsfile.Source
	for _, path := range paths {
		more, err := readPath(path)
		if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
			return nil, wrongUse(err)
		}
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return nil, wrongUse(fmt.Errorf("%s: no %s, *.yaml or *.yml, in this directory", path, what))
		}
		sources = append(sources, more...)
	}
	return distinct(sources), nil
}

func filesOf(sources []limitsfile.Source) []*grlv1.LimitsFile {
	files := make([]*grlv1.LimitsFile, len(sources))
	for i, s := range sources {
		files[i] = &grlv1.LimitsFile{Name: s.Name, Data: s.Data}
	}
	return files
}

func printPolicies(cmd *cobra.Command, call *calling, o *grlv1.PolicyOutcome, dryRun bool, done string) error {
	return call.print(cmd.OutOrStdout(), o, func() string { return policyOutcomeText(o, dryRun, done) })
}

// policyOutcomeText says what a change of policies did, or would do.
func policyOutcomeText(o *grlv1.PolicyOutcome, dryRun bool, done string) string {
	var b strings.Builder
	for _, list := range []struct {
		word  string
		names []string
	}{{"added    ", o.GetAdded()}, {"removed  ", o.GetRemoved()}, {"changed  ", o.GetUpdated()}} {
		for _, name := range list.names {
			b.WriteString(list.word + name + "\n")
		}
	}
	revision := o.GetRevision().GetNumber()
	switch {
	case !o.GetChanged():
		fmt.Fprintf(&b, "nothing changed: r%d of the policies holds\n", revision)
	case dryRun:
		changes := len(o.GetAdded()) + len(o.GetRemoved()) + len(o.GetUpdated())
		fmt.Fprintf(&b, "would change %s of r%d of the policies; nothing was changed\n", policies(changes), revision)
	default:
		fmt.Fprintf(&b, "%s r%d of the policies\n", done, revision)
	}
	return terminal.Printable(b.String())
}

// policies returns "1 policy" or "3 policies".
func policies(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

func deletePolicy(call *calling) *cobra.Command {
	request := &grlv1.DeletePolicyRequest{}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a policy; the limits that it computed stay",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Name = args[0]
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Policy.DeletePolicy(cmd.Context(), request)
			if err != nil {
				return err
			}
			return printPolicies(cmd, call, answer.GetOutcome(), false, "deleted:")
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the audit")
	return cmd
}

func policyRevisions(call *calling) *cobra.Command {
	request := &grlv1.ListPolicyRevisionsRequest{}
	cmd := &cobra.Command{
		Use:   "revisions",
		Short: "List the revisions of the policies, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := conn.Policy.ListPolicyRevisions(cmd.Context(), request)
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string { return revisionTable(list.GetRevisions()) })
		},
	}
	call.prints(cmd)
	cmd.Flags().Uint32Var(&request.PageSize, "limit", 20, "at most so many, 1 to 1,000")
	cmd.Flags().Uint64Var(&request.Before, "before", 0, "only those below this `revision`")
	return cmd
}

func rollbackPolicies(call *calling) *cobra.Command {
	request := &grlv1.RollbackPoliciesRequest{}
	cmd := &cobra.Command{
		Use:     "rollback REVISION --reason TEXT",
		Short:   "Make a revision of the policies that equals an older one",
		Example: `  grl policy rollback 11 --reason "the new floor was too high"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if request.Revision, err = parseRevision(args[0]); err != nil {
				return err
			}
			if err := needReason(request.GetReason()); err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Policy.RollbackPolicies(cmd.Context(), request)
			if err != nil {
				return err
			}
			return printPolicies(cmd, call, answer.GetOutcome(), false, fmt.Sprintf("rolled back to r%d:", request.GetRevision()))
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the audit")
	return cmd
}

func getPolicies(call *calling) *cobra.Command {
	request := &grlv1.GetPoliciesRequest{}
	cmd := &cobra.Command{
		Use:   "policies [NAME]...",
		Short: "List the policies by which limits are computed",
		Long: `List the policies by which the configurator computes limits, or those of the names
given. -o yaml prints them as they were written, with --- between them, and -o json the
message of the API.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := conn.Policy.GetPolicies(remote.WithTimeout(cmd.Context(), applyTimeout), request)
			if err != nil {
				return err
			}
			if list.Policies, err = named(list.GetPolicies(), args); err != nil {
				return err
			}
			if format, _ := call.format(); format == "yaml" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), policyTexts(list.GetPolicies()))
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string { return policyTable(list.GetPolicies()) })
		},
	}
	call.prints(cmd)
	cmd.Flags().Uint64Var(&request.Revision, "revision", 0, "those of this `revision` of the policies")
	return cmd
}

// named returns the policies with these names, all if there are no names.
func named(all []*grlv1.Policy, names []string) ([]*grlv1.Policy, error) {
	if len(names) == 0 {
		return all, nil
	}
	byName := make(map[string]*grlv1.Policy, len(all))
	for _, p := range all {
		byName[p.GetName()] = p
	}
	var some []*grlv1.Policy
	for _, name := range names {
		p, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("there is no policy %q", name)
		}
		some = append(some, p)
	}
	return some, nil
}

// policyTexts returns policies as they were written.
func policyTexts(list []*grlv1.Policy) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = strings.TrimRight(terminal.Printable(string(p.GetData())), "\n") + "\n"
	}
	return strings.Join(texts, "---\n")
}

func policyTable(list []*grlv1.Policy) string {
	if len(list) == 0 {
		return "no policies\n"
	}
	t := terminal.Table{Columns: []string{"policy", "kind", "mode", ">buckets"}}
	for _, p := range list {
		t.Add(p.GetName(), p.GetKind(), modeText(p.GetMode()), countText(p.GetBuckets()))
	}
	return t.String()
}

func modeText(m grlv1.PolicyMode) string {
	return dash(strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(m.String(), "POLICY_MODE_"), "UNSPECIFIED")))
}
