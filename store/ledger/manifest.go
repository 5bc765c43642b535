package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"grl/store"
)

// Hash is the SHA-256 of a document or of a part of a manifest.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hexadecimal digits of h.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText returns.
func (h *Hash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("hash of %d digits", len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// A manifest says which service has which document. It consists of pages, so
// that a change of one service writes one page anew, and a root that lists the
// pages; each is kept under its hash, and the hash of the root is the
// revision's.
type root struct {
	Pages []Hash `json:"pages"`
}

// page has some of the services with their documents.
type page map[string]Hash

// pageServices is how many services there are in a page, about.
const pageServices = 256

const keyManifest = "manifest/"

func manifestKey(h Hash) string { return keyManifest + h.String() }

// paginate returns the records of a manifest by their hashes, and which of them
// is the root. The page of a service depends on its name and on how many
// services there are, to a power of two.
func paginate(services map[string]Hash) (rootHash Hash, records map[Hash][]byte) {
	count := 1
	for count*pageServices < len(services) {
		count *= 2
	}
	pages := make([]page, count)
	for service, hash := range services {
		sum := sha256.Sum256([]byte(service))
		i := (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) % count
		if pages[i] == nil {
			pages[i] = make(page)
		}
		pages[i][service] = hash
	}
	records = make(map[Hash][]byte, count+1)
	add := func(value any) Hash {
		text := encode(value) // with its keys in order
		hash := Hash(sha256.Sum256(text))
		records[hash] = text
		return hash
	}
	list := root{Pages: []Hash{}}
	for _, p := range pages {
		if len(p) > 0 {
			list.Pages = append(list.Pages, add(p))
		}
	}
	return add(list), records
}

// Manifest returns the hash of the document of every service at a revision, none
// for revision 0; see Bodies. ErrNotFound if there is no such revision.
func (l *Ledger) Manifest(ctx context.Context, revision uint64) (map[string]Hash, error) {
	r, err := l.revision(ctx, revision)
	if err == nil {
		var m manifest
		if m, err = l.manifest(ctx, r); err == nil {
			return m.services, nil
		}
	}
	return nil, fmt.Errorf("read manifest of r%d: %w", revision, err)
}

// manifest is a manifest as read.
type manifest struct {
	services map[string]Hash
	records  map[Hash]bool // root and pages
}

func (l *Ledger) manifest(ctx context.Context, r Revision) (manifest, error) {
	m := manifest{services: make(map[string]Hash), records: make(map[Hash]bool)}
	if r.Number == 0 {
		return m, nil
	}
	var list root
	if err := l.manifestRecords(ctx, []Hash{r.manifest}, func(r store.Record) error { return decode(r, &list) }); err != nil {
		return m, err
	}
	m.records[r.manifest] = true
	for _, hash := range list.Pages {
		m.records[hash] = true
	}
	err := l.manifestRecords(ctx, list.Pages, func(r store.Record) error {
		var p page
		err := decode(r, &p)
		maps.Copy(m.services, p)
		return err
	})
	return m, err
}

// manifestRecords calls each with the records of these hashes, after comparing
// them.
func (l *Ledger) manifestRecords(ctx context.Context, hashes []Hash, each func(store.Record) error) error {
	for chunk := range slices.Chunk(hashes, getKeys) {
		keys := make([]string, len(chunk))
		for i, hash := range chunk {
			keys[i] = manifestKey(hash)
		}
		records, err := l.engine.Get(ctx, keys...)
		if err != nil {
			return err
		}
		for i, r := range records {
			if Hash(sha256.Sum256(r.Value)) != chunk[i] {
				return fmt.Errorf("%w: record %q", store.ErrDamaged, r.Key)
			}
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}
