package desk

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store/ledger"
)

// document is the normalised content of one service. It is not changed.
type document struct {
	text    []byte
	hash    ledger.Hash // of text
	service *limiter.Service
	size    int // bytes as a message

	index  sync.Once      // sets places, on the first use: few documents are asked
	places map[string]int // name of a bucket → its index
}

// bucket returns one of the service by its name, nil if there is none.
func (d *document) bucket(name string) *limiter.Bucket {
	d.index.Do(func() {
		d.places = make(map[string]int, len(d.service.Buckets))
		for i := range d.service.Buckets {
			d.places[d.service.Buckets[i].Name] = i
		}
	})
	if i, ok := d.places[name]; ok {
		return &d.service.Buckets[i]
	}
	return nil
}

// snapshot is a configuration: that of a revision, or one that shall become it.
// It is not changed once it is made.
type snapshot struct {
	revision  ledger.Revision
	documents map[string]*document // service →
}

func newDocument(s limiter.Service) *document {
	text := limitsfile.Normalize(s)
	return &document{text: text, hash: sha256.Sum256(text), service: &s, size: messageSize(&s)}
}

// parseDocument reads what the ledger has of one service.
func parseDocument(service string, text []byte) (*document, error) {
	services, err := limitsfile.Load([]limitsfile.Source{{Name: service, Data: text}})
	if err != nil {
		return nil, fmt.Errorf("read stored limits: %w", err)
	}
	if len(services) != 1 || services[0].Name != service {
		return nil, fmt.Errorf("read stored limits: the document of %q is of another service", service)
	}
	return &document{text: text, hash: sha256.Sum256(text), service: &services[0], size: messageSize(&services[0])}, nil
}

// at returns a revision. What did not change since the head that was seen last
// is taken from there.
func (d *Desk) at(ctx context.Context, revision ledger.Revision) (*snapshot, error) {
	if last := d.head.Load(); last != nil && last.revision.Number == revision.Number {
		return last, nil
	}
	manifest, err := d.opts.Ledger.Manifest(ctx, revision.Number)
	if err != nil {
		return nil, err
	}
	documents, err := d.read(ctx, manifest)
	return &snapshot{revision: revision, documents: documents}, err
}

// read returns the documents of a manifest, as far as they can be from the head
// that was seen last.
func (d *Desk) read(ctx context.Context, manifest map[string]ledger.Document) (map[string]*document, error) {
	documents := make(map[string]*document, len(manifest))
	var known map[string]*document
	if last := d.head.Load(); last != nil {
		known = last.documents
	}
	var missing []ledger.Document
	for service, kept := range manifest {
		if doc := known[service]; doc != nil && doc.hash == kept.Hash {
			documents[service] = doc
		} else {
			missing = append(missing, kept)
		}
	}
	texts, err := d.opts.Ledger.Bodies(ctx, missing...)
	if err != nil {
		return nil, err
	}
	for service, kept := range manifest {
		if documents[service] != nil {
			continue
		}
		if documents[service], err = parseDocument(service, texts[kept.Hash]); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// readOne returns one document of a manifest; nil if it has none of the service.
func (d *Desk) readOne(ctx context.Context, manifest map[string]ledger.Document, service string) (*document, error) {
	kept, ok := manifest[service]
	if !ok {
		return nil, nil
	}
	documents, err := d.read(ctx, map[string]ledger.Document{service: kept})
	return documents[service], err
}

// readHead returns the head.
func (d *Desk) readHead(ctx context.Context, revision ledger.Revision) (*snapshot, error) {
	head, err := d.at(ctx, revision)
	if err == nil {
		d.head.Store(head)
	}
	return head, err
}

// with returns s with other documents for some services; a nil one removes the
// service.
func (s *snapshot) with(changed map[string]*document) *snapshot {
	next := &snapshot{documents: maps.Clone(s.documents)}
	for service, doc := range changed {
		if doc == nil {
			delete(next.documents, service)
		} else {
			next.documents[service] = doc
		}
	}
	return next
}

// differences returns the services whose documents differ, sorted.
func (s *snapshot) differences(next *snapshot) []string {
	var names []string
	for name, doc := range s.documents {
		if !doc.equal(next.documents[name]) {
			names = append(names, name)
		}
	}
	for name := range next.documents {
		if s.documents[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// equal takes nil for a service that is not there.
func (d *document) equal(other *document) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.hash == other.hash
}

func (s *snapshot) texts() map[string][]byte {
	texts := make(map[string][]byte, len(s.documents))
	for name, doc := range s.documents {
		texts[name] = doc.text
	}
	return texts
}

// services returns some services, as far as they are there.
func (s *snapshot) services(names []string) []limiter.Service {
	var services []limiter.Service
	for _, name := range names {
		if doc := s.documents[name]; doc != nil {
			services = append(services, *doc.service)
		}
	}
	return services
}

func (s *snapshot) buckets() int {
	n := 0
	for _, doc := range s.documents {
		n += len(doc.service.Buckets)
	}
	return n
}

// owner returns the owner of a service; "" if it has none or is not there.
func (s *snapshot) owner(service string) string {
	if doc := s.documents[service]; doc != nil {
		return doc.service.Owner
	}
	return ""
}
