package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
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

// Document is the normalised YAML of a service as a manifest names it. Its Hash
// says what is in it, see Bodies for the text.
type Document struct {
	Hash Hash
	// Where it lies: documents that became part of the configuration together
	// share a pack, and pack is the hash of that.
	pack     Hash
	at, size int // in the pack, in bytes
}

// A manifest says which service has which document. It consists of pages, so
// that a change of one service writes one page anew, and a root that lists the
// pages; each is kept under its hash, and the hash of the root is the
// revision's.
type root struct {
	Pages []Hash `json:"pages"`
}

// page has some of the services with their documents, by the pack that these
// lie in.
type page map[Hash]map[string]slot

// slot is where a document lies in a pack.
type slot struct {
	Hash Hash `json:"hash,omitzero"` // zero: that of the pack, which is it alone
	At   int  `json:"at,omitzero"`
	Size int  `json:"size"`
}

func (p page) add(service string, d Document) {
	if p[d.pack] == nil {
		p[d.pack] = make(map[string]slot)
	}
	s := slot{d.Hash, d.at, d.size}
	if d.Hash == d.pack {
		s.Hash = Hash{}
	}
	p[d.pack][service] = s
}

// pageServices is how many services there are in a page, about.
const pageServices = 256

const keyManifest = "manifest/"

func manifestKey(h Hash) string { return keyManifest + h.String() }

// pagesOf returns the names of services page by page, in order. The page of a
// service depends on its name and on how many services there are, to a power of
// two.
func pagesOf(services map[string]Hash) [][]string {
	count := 1
	for count*pageServices < len(services) {
		count *= 2
	}
	pages := make([][]string, count)
	for service := range services {
		i := pageOf(service, count)
		pages[i] = append(pages[i], service)
	}
	for _, names := range pages {
		slices.Sort(names)
	}
	return slices.DeleteFunc(pages, func(names []string) bool { return len(names) == 0 })
}

// pageOf returns in which of so many pages a service is.
func pageOf(service string, count int) int {
	sum := sha256.Sum256([]byte(service))
	return int(binary.BigEndian.Uint32(sum[:])) % count
}

// manifest is which service has which document, and the records that say so.
type manifest struct {
	services map[string]Document
	root     Hash
	records  map[Hash][]byte // root and pages
}

// holds reports whether the services have documents of these hashes.
func (m *manifest) holds(services map[string]Hash) bool {
	return maps.EqualFunc(m.services, services, func(d Document, h Hash) bool { return d.Hash == h })
}

// next returns the manifest of services with these documents, of which those
// that m has stay where they lie, and the packs for the others by their hashes.
func (m *manifest) next(services map[string]Hash, bodies map[string][]byte) (next manifest, packs map[Hash][]byte) {
	known := make(map[Hash]Document, len(services))
	for _, d := range m.services {
		known[d.Hash] = d
	}
	next = manifest{services: make(map[string]Document, len(services)), records: make(map[Hash][]byte)}
	packs = make(map[Hash][]byte)
	list := root{Pages: []Hash{}}
	for _, names := range pagesOf(services) {
		pack(names, services, bodies, known, packs)
		p := make(page)
		for _, service := range names {
			d := known[services[service]]
			next.services[service] = d
			p.add(service, d)
		}
		list.Pages = append(list.Pages, next.add(p))
	}
	next.root = next.add(list)
	return next, packs
}

func (m *manifest) add(record any) Hash {
	text := encode(record) // with its keys in order
	hash := Hash(sha256.Sum256(text))
	m.records[hash] = text
	return hash
}

// Manifest returns the document of every service at a revision, none for
// revision 0. ErrNotFound if there is no such revision.
func (l *Ledger) Manifest(ctx context.Context, revision uint64) (map[string]Document, error) {
	r, err := l.revision(ctx, revision)
	if err == nil {
		var m manifest
		if m, err = l.manifest(ctx, r); err == nil {
			return m.services, nil
		}
	}
	return nil, fmt.Errorf("read manifest of r%d: %w", revision, err)
}

func (l *Ledger) manifest(ctx context.Context, r Revision) (manifest, error) {
	m := manifest{services: make(map[string]Document), root: r.manifest, records: make(map[Hash][]byte)}
	if r.Number == 0 {
		return m, nil
	}
	var list root
	err := l.manifestRecords(ctx, []Hash{m.root}, func(r store.Record) error {
		m.records[m.root] = r.Value
		return decode(r, &list)
	})
	if err != nil {
		return m, err
	}
	at := 0
	err = l.manifestRecords(ctx, list.Pages, func(r store.Record) error {
		m.records[list.Pages[at]] = r.Value
		at++
		var p page
		if err := decode(r, &p); err != nil {
			return err
		}
		for pack, slots := range p {
			for service, s := range slots {
				if s.Hash == (Hash{}) {
					s.Hash = pack
				}
				m.services[service] = Document{s.Hash, pack, s.At, s.Size}
			}
		}
		return nil
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

// Document returns the document of one service at a revision, false if it had
// none then. It reads a fraction of what Manifest reads.
func (l *Ledger) Document(ctx context.Context, r Revision, service string) (d Document, ok bool, err error) {
	if r.Number == 0 {
		return Document{}, false, nil
	}
	d, ok, err = l.document(ctx, r, service)
	if err != nil {
		err = fmt.Errorf("read document of r%d: %w", r.Number, err)
	}
	return d, ok, err
}

func (l *Ledger) document(ctx context.Context, r Revision, service string) (d Document, ok bool, err error) {
	var list root
	if err := l.manifestRecords(ctx, []Hash{r.manifest}, func(r store.Record) error { return decode(r, &list) }); err != nil {
		return Document{}, false, err
	}
	pages := list.Pages
	if n := len(pages); n > 0 && n&(n-1) == 0 {
		// None was left out as empty: it is known which one has the service. Where
		// some were, that may be a wrong one, so all are looked at.
		at := pageOf(service, n)
		pages = append([]Hash{pages[at]}, slices.Delete(slices.Clone(pages), at, at+1)...)
	}
	for _, hash := range pages {
		err := l.manifestRecords(ctx, []Hash{hash}, func(r store.Record) error {
			var p page
			if err := decode(r, &p); err != nil {
				return err
			}
			for pack, slots := range p {
				if s, found := slots[service]; found {
					if s.Hash == (Hash{}) {
						s.Hash = pack
					}
					d, ok = Document{s.Hash, pack, s.At, s.Size}, true
				}
			}
			return nil
		})
		if err != nil || ok {
			return d, ok, err
		}
	}
	return Document{}, false, nil
}
