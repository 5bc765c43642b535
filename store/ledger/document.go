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
	// packSize is how much documents share a pack, in bytes. One that is larger
	// has a pack to itself.
	packSize = 64 << 10
	// partSize is the most of a pack that one record has, in bytes. A part that
	// is shorter is the last.
	partSize = 512 << 10
	// getKeys is how many records are read at once: it bounds the memory.
	getKeys = 100
)

func partsKey(pack Hash) string { return keyDocument + pack.String() + "/" }

func partKey(pack Hash, part int) string { return fmt.Sprintf("%s%04d", partsKey(pack), part) }

// parts returns the writes of a pack.
func parts(pack Hash, body []byte) []store.Write {
	var writes []store.Write
	for part := 0; part == 0 || len(body) > 0; part++ {
		n := min(len(body), partSize)
		writes = append(writes, store.Write{Key: partKey(pack, part), Value: body[:n]})
		body = body[n:]
	}
	return writes
}

// pack adds to known and packs the documents of the services named that are not
// known.
func pack(names []string, services map[string]Hash, bodies map[string][]byte, known map[Hash]Document, packs map[Hash][]byte) {
	var filling []Document
	var body []byte
	full := func() {
		if len(filling) == 0 {
			return
		}
		hash := Hash(sha256.Sum256(body))
		packs[hash] = body
		for _, d := range filling {
			d.pack = hash
			known[d.Hash] = d
		}
		filling, body = nil, nil
	}
	for _, service := range names {
		d := Document{Hash: services[service], at: len(body), size: len(bodies[service])}
		if _, ok := known[d.Hash]; ok {
			continue
		}
		if len(body)+d.size > packSize {
			full()
			d.at = 0
		}
		known[d.Hash] = d
		filling, body = append(filling, d), append(body, bodies[service]...)
	}
	full()
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
	for service, d := range m.services {
		documents[service] = bodies[d.Hash]
	}
	return documents, nil
}

// Bodies returns the texts of documents that a Manifest named, by their hashes,
// so that a reader of one revision after another need not read again what
// stayed. Each was compared with its hash.
func (l *Ledger) Bodies(ctx context.Context, documents ...Document) (map[Hash][]byte, error) {
	bodies, err := l.bodies(ctx, documents)
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	return bodies, nil
}

func (l *Ledger) bodies(ctx context.Context, documents []Document) (map[Hash][]byte, error) {
	inPack := make(map[Hash][]Document)
	for _, d := range documents {
		inPack[d.pack] = append(inPack[d.pack], d)
	}
	bodies := make(map[Hash][]byte, len(documents))
	err := l.packs(ctx, slices.Collect(maps.Keys(inPack)), func(pack Hash, body []byte) error {
		for _, d := range inPack[pack] {
			if d.at < 0 || d.size < 0 || d.at+d.size > len(body) || sha256.Sum256(body[d.at:d.at+d.size]) != d.Hash {
				return fmt.Errorf("%w: document %s", store.ErrDamaged, d.Hash)
			}
			bodies[d.Hash] = body[d.at : d.at+d.size : d.at+d.size]
		}
		return nil
	})
	return bodies, err
}

// packs calls each with the packs of these hashes, after comparing them.
func (l *Ledger) packs(ctx context.Context, packs []Hash, each func(pack Hash, body []byte) error) error {
	for chunk := range slices.Chunk(packs, getKeys) {
		keys := make([]string, len(chunk))
		for i, pack := range chunk {
			keys[i] = partKey(pack, 0)
		}
		records, err := l.engine.Get(ctx, keys...)
		if err != nil {
			return err
		}
		for i, first := range records {
			body, err := l.pack(ctx, chunk[i], first)
			if err != nil {
				return err
			}
			if err := each(chunk[i], body); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack returns a pack of which the first record was read.
func (l *Ledger) pack(ctx context.Context, pack Hash, first store.Record) ([]byte, error) {
	body := first.Value
	for last := first; len(last.Value) == partSize; {
		next, err := l.engine.List(ctx, partsKey(pack), last.Key, 1)
		if err != nil {
			return nil, err
		}
		if len(next) == 0 {
			break
		}
		last = next[0]
		body = append(body, last.Value...)
	}
	if first.Version == 0 || sha256.Sum256(body) != pack {
		return nil, fmt.Errorf("%w: documents %s", store.ErrDamaged, pack)
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
