package ledger

import "context"

// PoliciesChanged is Changed of the policies.
func (l *Ledger) PoliciesChanged(ctx context.Context) <-chan struct{} {
	return l.engine.Changed(ctx, keyPolicyHead)
}

// RunsChanged is Changed of the runs of the configurator, and of what is decided
// of their proposals.
func (l *Ledger) RunsChanged(ctx context.Context) <-chan struct{} {
	return l.engine.Changed(ctx, keyRun)
}
