package ledger

import (
	"context"
	"fmt"

	"grl/store"
)

// Source is where limits files came from, such as "limits directory", and the
// hash of their content, or another text on one line that is to be found again;
// see MaxSourceText.
type Source struct{ Name, Hash string }

const keySource = "source/"

// source is the record of a source: what was last loaded from it.
type source struct {
	Hash     string `json:"hash"`
	Revision uint64 `json:"revision"`
}

// LastSource returns the hash of the content that was last loaded from a source,
// and the revision that was head after it: the base for the next load. "" and 0
// if nothing was loaded from it yet.
func (l *Ledger) LastSource(ctx context.Context, name string) (hash string, revision uint64, err error) {
	last, err := l.lastSource(ctx, name)
	if err != nil {
		return "", 0, fmt.Errorf("read source %q: %w", name, err)
	}
	return last.Hash, last.Revision, nil
}

func (l *Ledger) lastSource(ctx context.Context, name string) (last source, err error) {
	k, err := key(keySource, name)
	if err != nil {
		return source{}, err
	}
	records, err := l.engine.Get(ctx, k)
	if err != nil {
		return source{}, err
	}
	return last, decode(records[0], &last)
}

// loaded returns the writes that remember what was loaded from sources.
func loaded(sources []Source, revision uint64) ([]store.Write, error) {
	var writes []store.Write
	for _, s := range sources {
		k, err := key(keySource, s.Name)
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", s.Name, err)
		}
		writes = append(writes, put(k, source{s.Hash, revision}))
	}
	return writes, nil
}
