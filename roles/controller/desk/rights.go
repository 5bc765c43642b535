package desk

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"grl/policy/guard"
	"grl/proto/access"
)

// denialQuiet is how long the same denial is not written to the audit again: who
// is denied without end must not fill it.
const (
	denialQuiet = time.Minute
	maxDenials  = 1_000 // remembered
)

// denials remembers what was written.
type denials struct {
	mu sync.Mutex           // guards at
	at map[string]time.Time // actor and action → last written
}

// fresh reports whether a denial is to be written.
func (n *denials) fresh(key string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.at[key]) < denialQuiet {
		return false
	}
	if n.at == nil || len(n.at) >= maxDenials {
		n.at = make(map[string]time.Time)
	}
	n.at[key] = now
	return true
}

// deny returns a DeniedError, and writes it to the audit.
func (d *Desk) deny(ctx context.Context, by By, action string, subjects []string, format string, args ...any) error {
	denied := &DeniedError{fmt.Sprintf(format, args...)}
	if d.denials.fresh(by.Person.Name+"\x00"+action, time.Now()) {
		if err := d.opts.Ledger.Note(ctx, by.act("", false), "refused."+action, subjects, "", denied.Text); err != nil {
			d.opts.Log.ErrorContext(ctx, "cannot write a denial to the audit", "actor", by.Person.Name, "action", action, "err", err)
		}
	}
	return denied
}

// refusedMark begins the lines, in what an entry says a change would have made of
// buckets, that say why a guard rail refused it.
const refusedMark = "# refused: "

// noteRefusal writes a change that guard rails refused to the audit, with what it
// would have changed, and why not.
func (d *Desk) noteRefusal(ctx context.Context, p proposal, changes []Change, needed []guard.Finding) {
	if !d.denials.fresh(p.by.Person.Name+"\x00rails\x00"+p.action, time.Now()) {
		return
	}
	before, after := auditTexts(changes)
	var why strings.Builder
	for _, f := range needed[:min(len(needed), maxRefused)] {
		why.WriteString(refusedMark + strings.TrimSpace(f.Bucket+" "+f.Text) + "\n")
	}
	// Before what the ledger may cut.
	err := d.opts.Ledger.Note(ctx, p.act(false), "refused."+p.action, subjects(changes), before, why.String()+after)
	if err != nil {
		d.opts.Log.ErrorContext(ctx, "cannot write a refusal to the audit", "actor", p.by.Person.Name, "action", p.action, "err", err)
	}
}

// maxRefused is how many reasons an entry of a refusal has.
const maxRefused = 20

// checkRights makes sure that the person may edit every service that changes,
// as it is and as it shall be.
func (d *Desk) checkRights(ctx context.Context, p proposal, head, next *snapshot, changed []string) error {
	var foreign []string
	for _, service := range changed {
		if !mayEdit(p.by.Person, service, head, next) {
			foreign = append(foreign, service)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return d.deny(ctx, p.by, p.action, foreign[:min(len(foreign), maxSubjects)], "%s may not change the limits of %s", p.by.Person.Name, listed(foreign))
}

// listed names the first of some services, and how many there are beside them.
func listed(names []string) string {
	shown := strings.Join(names[:min(len(names), 10)], ", ")
	if len(names) > 10 {
		shown += fmt.Sprintf(" and %d more", len(names)-10)
	}
	return shown
}

// mayEdit asks for the owner before and after: nobody takes a service over, or
// gives it away to someone without their consent.
func mayEdit(p access.Person, service string, states ...*snapshot) bool {
	for _, s := range states {
		if s.documents[service] != nil && !p.MayEdit(service, s.owner(service)) {
			return false
		}
	}
	return true
}
