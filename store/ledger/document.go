package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"grl/store"
)

const (
	keyDocument = "doc/"
	// partSize is the most of a document that one record has, in bytes. A part
	// that is shorter is the last.
	partSize = 512 << 10
	// getKeys is how many records are read at once.
	getKeys = 1000
)

func partsKey(h Hash) string { return keyDocument + h.String() + "/" }

func partKey(h Hash, part int) string { return fmt.Sprintf("%s%04d", partsKey(h), part) }

// parts returns the writes of a document.
func parts(h Hash, body []byte) []store.Write {
	var writes []store.Write
	for part := 0; part == 0 || len(body) > 0; part++ {
		n := min(len(body), partSize)
		writes = append(writes, store.Write{Key: partKey(h, part), Value: body[:n]})
		body = body[n:]
	}
	return writes
}

func hashDocuments(documents map[string][]byte) map[string]Hash {
	hashes := make(map[string]Hash, len(documents))
	for service, body := range documents {
		hashes[service] = sha256.Sum256(body)
	}
	return hashes
}

// Documents returns the normalised YAML of every service at a revision; none for
// revision 0. ErrNotFound if there is no such revision. All was compared with
// its hash.
func (l *Ledger) Documents(ctx context.Context, revision uint64) (map[string][]byte, error) {
	documents, err := l.documents(ctx, revision)
	if err != nil {
		return nil, fmt.Errorf("read documents of r%d: %w", revision, err)
	}
	return documents, nil
}

func (l *Ledger) documents(ctx context.Context, revision uint64) (map[string][]byte, error) {
	r, err := l.revision(ctx, revision)
	if err != nil {
		return nil, err
	}
	m, err := l.manifest(ctx, r)
	if err != nil {
		return nil, err
	}
	bodies, err := l.bodies(ctx, slices.Collect(maps.Values(m.services)))
	if err != nil {
		return nil, err
	}
	documents := make(map[string][]byte, len(m.services))
	for service, hash := range m.services {
		documents[service] = bodies[hash]
	}
	return documents, nil
}

// Bodies returns the documents of these hashes, which a Manifest named, so that
// a reader of one revision after another need not read again what stayed. Each
// was compared with its hash.
func (l *Ledger) Bodies(ctx context.Context, hashes ...Hash) (map[Hash][]byte, error) {
	bodies, err := l.bodies(ctx, hashes)
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	return bodies, nil
}

func (l *Ledger) bodies(ctx context.Context, hashes []Hash) (map[Hash][]byte, error) {
	bodies := make(map[Hash][]byte, len(hashes))
	for chunk := range slices.Chunk(hashes, getKeys) {
		keys := make([]string, len(chunk))
		for i, hash := range chunk {
			keys[i] = partKey(hash, 0)
		}
		records, err := l.engine.Get(ctx, keys...)
		if err != nil {
			return nil, err
		}
		for i, first := range records {
			if bodies[chunk[i]], err = l.body(ctx, chunk[i], first); err != nil {
				return nil, err
			}
		}
	}
	return bodies, nil
}

// body returns a document of which the first record was read.
func (l *Ledger) body(ctx context.Context, hash Hash, first store.Record) ([]byte, error) {
	body := first.Value
	for last := first; len(last.Value) == partSize; {
		next, err := l.engine.List(ctx, partsKey(hash), last.Key, 1)
		if err != nil {
			return nil, err
		}
		if len(next) == 0 {
			break
		}
		last = next[0]
		body = append(body, last.Value...)
	}
	if Hash(sha256.Sum256(body)) != hash || first.Version == 0 {
		return nil, fmt.Errorf("%w: document %s", store.ErrDamaged, hash)
	}
	return body, nil
}

// write makes writes of which none depends on another, in as many commits as
// their bounds need.
func (l *Ledger) write(ctx context.Context, writes []store.Write) error {
	for len(writes) > 0 {
		n, size := 0, 0
		for n < len(writes) && n < store.MaxWrites {
			if size += len(writes[n].Key) + len(writes[n].Value); size > store.MaxCommit && n > 0 {
				break
			}
			n++
		}
		if err := l.engine.Commit(ctx, nil, writes[:n]); err != nil {
			return err
		}
		writes = writes[n:]
	}
	return nil
}
