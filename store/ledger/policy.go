package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"grl/store"
)

// PolicySet is the policies at one of their revisions, which have numbers of
// their own: number 0 is that of no policies, before the first change.
type PolicySet struct {
	Revision Revision
	Texts    map[string][]byte // name of a policy → YAML as it was written
}

// MaxPolicies bounds the texts of all policies together, in bytes of their
// JSON.
const MaxPolicies = store.MaxValue * 3 / 4

const (
	keyPolicyHead = "policy-head"
	keyPolicy     = "policy/"      // the revisions, as small as a list of them needs
	keyPolicyText = "policy-text/" // what each has, compressed
)

// Policies returns the policies at a revision of theirs, 0: the present one.
// ErrNotFound if there is no such revision. The texts were compared with their
// hash.
func (l *Ledger) Policies(ctx context.Context, revision uint64) (PolicySet, error) {
	set, err := l.policies(ctx, revision)
	if err != nil {
		return PolicySet{}, fmt.Errorf("read policies of p%d: %w", revision, err)
	}
	return set, nil
}

func (l *Ledger) policies(ctx context.Context, revision uint64) (PolicySet, error) {
	set := PolicySet{Texts: make(map[string][]byte)}
	var err error
	if revision == 0 {
		set.Revision, err = l.readRevision(ctx, keyPolicyHead)
	} else if set.Revision, err = l.readRevision(ctx, numbered(keyPolicy, revision)); err == nil && set.Revision.Number == 0 {
		err = ErrNotFound
	}
	if err != nil || set.Revision.Number == 0 {
		return set, err
	}
	records, err := l.engine.Get(ctx, numbered(keyPolicyText, set.Revision.Number))
	if err != nil {
		return set, err
	}
	body, err := decompress(records[0], MaxPolicies)
	if err != nil {
		return set, err
	}
	if hashOf(body) != set.Revision.manifest {
		return set, fmt.Errorf("%w: record %q", store.ErrDamaged, records[0].Key)
	}
	var texts map[string]string
	if err := decode(store.Record{Key: records[0].Key, Version: records[0].Version, Value: body}, &texts); err != nil {
		return set, err
	}
	for name, text := range texts {
		set.Texts[name] = []byte(text)
	}
	return set, nil
}

// ApplyPolicies makes these the policies, if the head of the policies still is
// base; else it returns the present head and ErrConflict. Policies that equal
// the present ones make no revision, whatever the base, and the head comes back
// with Changed false. ErrTooMany if the texts exceed MaxPolicies. action,
// subjects, before and after are for the audit.
func (l *Ledger) ApplyPolicies(ctx context.Context, base uint64, act Act, action string, subjects []string, before, after string, texts map[string][]byte) (Revision, error) {
	body, err := encodePolicies(texts)
	if err = errors.Join(err, act.validate()); err != nil {
		return Revision{}, fmt.Errorf("apply policies on p%d: %w", base, err)
	}
	var result Revision
	packed := compress(body)
	err = l.change(ctx, []string{keyPolicyHead}, func(_ context.Context, records []store.Record) (*plan, error) {
		head, err := decodeRevision(records[0])
		if result = head; err != nil {
			return nil, err
		}
		if hash := hashOf(body); hash == head.manifest || head.Number == 0 && len(texts) == 0 {
			return nil, nil
		}
		if head.Number != base {
			return nil, fmt.Errorf("%w: head is p%d", ErrConflict, head.Number)
		}
		result = Revision{
			Number: head.Number + 1, Author: bounded(act.Actor, maxShort), Reason: bounded(act.Reason, maxShort),
			At: time.UnixMilli(act.At.UnixMilli()).UTC(), Changed: true, manifest: hashOf(body),
		}
		return &plan{
			writes: []store.Write{
				put(keyPolicyHead, result.record()),
				put(numbered(keyPolicy, result.Number), result.record()),
				{Key: numbered(keyPolicyText, result.Number), Value: packed},
			},
			entry: act.entry(action, subjects, before, after),
		}, nil
	})
	if err != nil {
		if !errors.Is(err, ErrConflict) {
			result = Revision{}
		}
		return result, fmt.Errorf("apply policies on p%d: %w", base, err)
	}
	return result, nil
}

// encodePolicies returns the JSON of texts, in the order of their names.
func encodePolicies(texts map[string][]byte) ([]byte, error) {
	plain := make(map[string]string, len(texts))
	for name, text := range texts {
		if name == "" || len(name) > maxName || !utf8.ValidString(name) || !utf8.Valid(text) {
			return nil, fmt.Errorf("policy %q: want a name of 1 to %d bytes, and UTF-8", name, maxName)
		}
		plain[name] = string(text)
	}
	body := encode(plain)
	if len(body) > MaxPolicies {
		return nil, fmt.Errorf("%w: policies of %d bytes, at most %d", ErrTooMany, len(body), MaxPolicies)
	}
	return body, nil
}

// PolicyRevisions returns the revisions of the policies with numbers below
// before, 0: all, the newest first, limit at most.
func (l *Ledger) PolicyRevisions(ctx context.Context, before uint64, limit int) ([]Revision, error) {
	list, err := l.revisions(ctx, keyPolicyHead, keyPolicy, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list revisions of policies: %w", err)
	}
	return list, nil
}
