package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	"grl/limiter/limitsfile"
	"grl/store/ledger"
)

// ApplyRequest asks for limits files to become the configuration of the
// services that they name.
type ApplyRequest struct {
	By
	// Files are limits files; their names are shown in errors.
	Files []limitsfile.Source
	// Base is the revision that the files were made from; nil: the one at which
	// files of the same source were last applied to a service, else the head,
	// or with a Source of its own nothing.
	Base *uint64
	// Source names where the files come from, if that is one place which has all
	// of them, such as "limits directory"; "": people. What comes from a place
	// and is as it was there last time changes nothing.
	Source string
	// Kept asks for the later edits that the files do not have also where these
	// are as they were last time.
	Kept bool
	// Prune removes the services that no file names.
	Prune  bool
	DryRun bool
	// Force passes the guard rails. It needs a reason, and the level admin.
	Force bool
	// Now takes the change to all zones at once. It needs Force.
	Now    bool
	Reason string
	// Edit says that this is one edit on top of Base, which it needs, rather than
	// the files that somebody keeps: what files were last applied at stays, so
	// older ones do not undo it.
	Edit bool
}

// Apply makes limits files the configuration of the services they name. What
// the files changed since their base is merged with what was changed since in
// other buckets. The error is an *InvalidError, *ConflictError, *GuardError,
// *DeniedError, *RolloutError or *PendingError, or one of the ledger.
func (d *Desk) Apply(ctx context.Context, r ApplyRequest) (Outcome, error) {
	a := application{desk: d, request: r, source: r.Source, hash: hashFiles(r.Files)}
	if a.source == "" {
		a.source = peopleSource
	}
	if out, settled, err := a.settled(ctx); settled || err != nil {
		return out, err
	}
	out, err := a.apply(ctx)
	a.remember(err)
	return out, err
}

func (a *application) apply(ctx context.Context) (Outcome, error) {
	r := a.request
	if err := checkFiles(r.Files); err != nil {
		return Outcome{}, err
	}
	if r.Edit && r.Base == nil {
		return Outcome{}, invalid("base", "an edit needs the revision that it was made from")
	}
	services, err := limitsfile.Load(r.Files)
	if err != nil {
		return Outcome{}, invalidFiles(err)
	}
	a.ours = make(map[string]*document, len(services))
	for _, s := range services {
		a.ours[s.Name] = newDocument(s)
	}
	return a.desk.change(ctx, proposal{
		by: r.By, action: "apply", reason: r.Reason, force: r.Force, now: r.Now, dryRun: r.DryRun, draft: a.draft,
	})
}

// application is one apply.
type application struct {
	desk    *Desk
	request ApplyRequest
	source  string
	hash    string               // of the files
	head    uint64               // when it began; of a place only
	ours    map[string]*document // service → what the files say
}

// draft merges the files with the head.
func (a *application) draft(ctx context.Context, head *snapshot, _ ledger.Rollout) (draft, error) {
	bases, err := a.bases(ctx, head)
	if err != nil {
		return draft{}, err
	}
	mergings, merged, err := a.merge(ctx, head, bases)
	if err != nil {
		return draft{}, err
	}
	changed := map[string]*document{}
	owed := map[string]string{} // item → what the files say, where it was not taken
	var kept, clashes []Conflict
	for i, m := range mergings {
		base := bases.number(m.service)
		changed[m.service] = merged[i].document
		for _, c := range m.conflicts(base, head.revision, merged[i].kept) {
			kept = append(kept, c)
			owed[c.Bucket] = c.OurText
		}
		clashes = append(clashes, m.conflicts(base, head.revision, merged[i].clashes)...)
	}
	if len(clashes) > 0 {
		return draft{}, &ConflictError{a.desk.attribute(ctx, clashes)}
	}
	next := head.with(changed)
	return draft{
		next: next,
		kept: a.desk.attribute(ctx, kept),
		sources: func(revision uint64) ([]ledger.Source, error) {
			return a.sources(revision, bases.lane, head, next, owed)
		},
	}, nil
}

// merge merges each service that the files speak of. Where they clash with the
// configurator alone, they win.
func (a *application) merge(ctx context.Context, head *snapshot, bases *bases) ([]merging, []merged, error) {
	var mergings []merging
	var all []merged
	open := make(map[string]*contest)
	for _, service := range a.named(head) {
		m := merging{service: service, head: head.documents[service], ours: a.ours[service], owed: bases.lane.Owed[service]}
		var err error
		if m.base, err = bases.document(ctx, service); err != nil {
			return nil, nil, err
		}
		got, err := m.merge()
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(open, m.contests(bases.number(service), got.clashes))
		mergings, all = append(mergings, m), append(all, got)
	}
	won, err := a.desk.outranked(ctx, open)
	if err != nil || len(won) == 0 {
		return mergings, all, err
	}
	for i := range mergings {
		if len(all[i].clashes) == 0 {
			continue
		}
		mergings[i].outranked = won
		if all[i], err = mergings[i].merge(); err != nil {
			return nil, nil, err
		}
	}
	return mergings, all, nil
}

// named returns the services that the files speak of: those they have and, with
// prune, those that are there.
func (a *application) named(head *snapshot) []string {
	names := make([]string, 0, len(a.ours))
	for name := range a.ours {
		names = append(names, name)
	}
	if a.request.Prune {
		for name := range head.documents {
			if a.ours[name] == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// sources returns what is remembered of the files. That is the base of the next
// ones, whoever applies them, so files that change nothing move it too only
// where the person might change something.
func (a *application) sources(revision uint64, was lane, head, next *snapshot, owed map[string]string) ([]ledger.Source, error) {
	if a.request.Edit {
		return nil, nil
	}
	own := func(service string) bool { return mayEdit(a.request.Person, service, head, next) }
	services := make([]string, 0, len(a.ours))
	for name := range a.ours {
		if own(name) {
			services = append(services, name)
		}
	}
	all := true
	for name := range next.documents {
		all = all && own(name) && (a.request.Prune || a.request.Source != "" || a.ours[name] != nil)
	}
	maps.DeleteFunc(owed, func(item, _ string) bool { return !own(serviceOf(item)) })
	l := was.applied(revision, services, all, owed)
	text, err := l.text()
	if err != nil {
		return nil, err
	}
	return []ledger.Source{{Name: a.source, Hash: a.hash}, {Name: a.source + baseSuffix, Hash: text}}, nil
}

// hashFiles names the content of files, with their names.
func hashFiles(files []limitsfile.Source) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %d ", len(f.Name), f.Name, len(f.Data))
		h.Write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// bases finds what services were when the files were made.
type bases struct {
	desk     *Desk
	head     *snapshot
	lane     lane
	explicit *uint64
	empty    bool                                  // a service without a base was not there
	read     map[uint64]map[string]ledger.Document // revision → its manifest
}

func (a *application) bases(ctx context.Context, head *snapshot) (*bases, error) {
	b := &bases{desk: a.desk, head: head, explicit: a.request.Base, empty: a.request.Source != "", read: map[uint64]map[string]ledger.Document{}}
	var err error
	if b.lane, err = a.desk.lane(ctx, a.source); err != nil {
		return nil, err
	}
	if b.explicit != nil {
		if err := checkBase(*b.explicit, head); err != nil {
			return nil, err
		}
		b.lane.Owed = nil // the base is what that revision says
	}
	return b, nil
}

func checkBase(base uint64, head *snapshot) error {
	if base > head.revision.Number {
		return invalid("base", "r%d is above the present revision, r%d", base, head.revision.Number)
	}
	return nil
}

// number returns the revision that is the base of a service.
func (b *bases) number(service string) uint64 {
	if b.explicit != nil {
		return *b.explicit
	}
	if n := b.lane.base(service); n != 0 || b.empty {
		return n
	}
	return b.head.revision.Number
}

// document returns a service at its base; nil if it was not there.
func (b *bases) document(ctx context.Context, service string) (*document, error) {
	n := b.number(service)
	if n == b.head.revision.Number {
		return b.head.documents[service], nil
	}
	manifest, ok := b.read[n]
	if !ok {
		var err error
		if manifest, err = b.desk.opts.Ledger.Manifest(ctx, n); err != nil {
			return nil, fmt.Errorf("read base: %w", err)
		}
		b.read[n] = manifest
	}
	return b.desk.readOne(ctx, manifest, service)
}

// conflicts describes items that differ.
func (m merging) conflicts(base uint64, head ledger.Revision, keys []string) []Conflict {
	if len(keys) == 0 {
		return nil
	}
	was, is, ours := itemsOf(m.base), itemsOf(m.head), itemsOf(m.ours)
	conflicts := make([]Conflict, len(keys))
	for i, key := range keys {
		conflicts[i] = Conflict{Bucket: key, Base: base, Revision: head, BaseText: was[key], TheirText: is[key], OurText: ours[key]}
	}
	return conflicts
}
