package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"grl/policy"
	"grl/policy/backtest"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
)

// triedPolicy is what grl backtest tries.
type triedPolicy struct {
	spec        policy.Spec
	kind        policy.Kind
	written     bool // it has a history of its own
	every       time.Duration
	bounds      backtest.Bounds
	train, test time.Duration // 0: by the length of the series
}

// triedPolicy finds out what --policy says.
func (f *backtestFlags) triedPolicy(cmd *cobra.Command) (*triedPolicy, error) {
	t := &triedPolicy{bounds: f.bounds, train: f.train, test: f.test}
	name, data, err := f.policyText(cmd)
	if err != nil {
		return nil, err
	}
	if t.spec, err = policyfile.Parse(name, data); err != nil {
		return nil, wrongUse(err)
	}
	t.kind = kindOf(t.spec.Kind)
	t.written = name != ""
	if t.written && !f.boundsSet {
		t.bounds = backtest.Live
	}
	t.every, err = policyfile.Every(&t.spec)
	return t, err
}

// policyText returns the policy file that --policy names; of a kind one with its
// defaults, without a name.
func (f *backtestFlags) policyText(cmd *cobra.Command) (name string, data []byte, err error) {
	if slices.Contains(kindNames(), f.policy) {
		if f.policy == "quota" {
			return "", nil, wrongUse(fmt.Errorf("--policy quota: a quota is agreed: name a policy file"))
		}
		return "", fmt.Appendf(nil, "name: %[1]s\nkind: %[1]s\nmatch: {service: \"*\"}\n", f.policy), nil
	}
	file, err := os.Open(f.policy)
	if errors.Is(err, fs.ErrNotExist) {
		return f.remotePolicy(cmd)
	}
	if err != nil {
		return "", nil, wrongUse(err)
	}
	defer file.Close()
	data, err = io.ReadAll(io.LimitReader(file, policyfile.MaxFileBytes+1)) // one more is refused
	return f.policy, data, err
}

// remotePolicy returns a policy of the controller.
func (f *backtestFlags) remotePolicy(cmd *cobra.Command) (name string, data []byte, err error) {
	missing := func(cause error) error {
		return wrongUse(fmt.Errorf("--policy %s: neither a kind (%s) nor a file, nor a policy of the controller: %w", f.policy, strings.Join(kindNames(), ", "), cause))
	}
	conn, err := f.call.dial(cmd)
	if err != nil {
		return "", nil, missing(err)
	}
	response, err := conn.Policy.GetPolicies(cmd.Context(), &grlv1.GetPoliciesRequest{})
	if err != nil {
		return "", nil, missing(err)
	}
	for _, p := range response.GetPolicies() {
		if p.GetName() == f.policy {
			return f.policy, p.GetData(), nil
		}
	}
	return "", nil, missing(fs.ErrNotExist)
}

// kindOf returns the row of the table of kinds that has a name, which is there.
func kindOf(name string) policy.Kind {
	kinds := policy.Kinds()
	return kinds[slices.IndexFunc(kinds, func(k policy.Kind) bool { return k.Name == name })]
}

// taught returns a series without the times of its service that the policy
// ignores.
func (t *triedPolicy) taught(s policy.Series, service string) policy.Series {
	if len(t.spec.Ignore) == 0 {
		return s
	}
	s.RPS = slices.Clone(s.RPS)
	for i := range s.RPS {
		if t.spec.Ignores(service, s.Time(i)) {
			s.RPS[i] = policy.Unknown
		}
	}
	return s
}

// options returns how it is tried on a series. A kind looks as far back as the
// training.
func (t *triedPolicy) options(s policy.Series) backtest.Options {
	spec := t.spec
	train, test := backtest.Lengths(s)
	if t.train != 0 {
		train = t.train
	}
	if t.test != 0 {
		test = t.test
	}
	if !t.written && spec.History > 0 {
		spec.History = train
	}
	return backtest.Options{Spec: &spec, Policy: t.kind.New(&spec), Train: train, Test: test, Every: t.every, Bounds: t.bounds}
}
