package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"
)

// moveToRecords is the second migration: it makes the tables of records and
// moves into them what version 1 kept in tables of its own, in the form that
// package ledger reads. Whatever becomes of that form, this stays as it is.
func moveToRecords(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, recordsSQL); err != nil {
		return err
	}
	for _, move := range []func(context.Context, *sql.Tx) ([]Write, error){movedDocuments, movedRevisions, movedSources, movedEpoch} {
		writes, err := move(ctx, tx)
		if err != nil {
			return err
		}
		if len(writes) == 0 {
			continue
		}
		if _, err := writeRecords(ctx, tx, writes); err != nil {
			return err
		}
	}
	// A table goes before those that it refers to.
	_, err := tx.ExecContext(ctx, "DROP TABLE head; DROP TABLE manifests; DROP TABLE revisions; DROP TABLE documents; DROP TABLE sources; DROP TABLE counters")
	return err
}

// movedPart is the most of a document that one record has, in bytes.
const movedPart = 512 << 10

func movedDocuments(ctx context.Context, tx *sql.Tx) ([]Write, error) {
	rows, err := tx.QueryContext(ctx, "SELECT hash, body FROM documents")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var writes []Write
	for rows.Next() {
		var hash, body []byte
		if err := rows.Scan(&hash, &body); err != nil {
			return nil, err
		}
		if found := sha256.Sum256(body); !bytes.Equal(found[:], hash) {
			return nil, fmt.Errorf("%w: document %x", errDamaged, hash)
		}
		for part := 0; part == 0 || len(body) > 0; part++ {
			n := min(len(body), movedPart)
			writes = append(writes, Write{Key: fmt.Sprintf("doc/%x/%04d", hash, part), Value: body[:n]})
			body = body[n:]
		}
	}
	return writes, rows.Err()
}

// movedRevision is a row of the table revisions, and the record it becomes.
type movedRevision struct {
	Number     uint64    `json:"number"`
	Author     string    `json:"author"`
	Reason     string    `json:"reason"`
	Source     string    `json:"source"`
	SourceHash string    `json:"source_hash"`
	At         time.Time `json:"at"`
	Manifest   string    `json:"manifest"` // of the record, in hexadecimal digits
}

func movedRevisions(ctx context.Context, tx *sql.Tx) ([]Write, error) {
	head, err := movedHead(ctx, tx)
	if err != nil {
		return nil, err
	}
	var writes []Write
	written := make(map[string]bool)
	put := func(key string, value any) ([]byte, error) {
		text, err := json.Marshal(value)
		if err == nil && !written[key] {
			written[key] = true
			writes = append(writes, Write{Key: key, Value: text})
		}
		return text, err
	}
	for number := uint64(1); number <= head; number++ {
		r, hashes, err := readMoved(ctx, tx, number)
		if err != nil {
			return nil, err
		}
		root := movedRoot{Pages: []string{}}
		for names := range slices.Chunk(slices.Sorted(maps.Keys(hashes)), movedPage) {
			page := make(map[string]map[string]movedSlot, len(names))
			for _, name := range names {
				d := hashes[name]
				pack := hex.EncodeToString(d.hash)
				if page[pack] == nil {
					page[pack] = make(map[string]movedSlot)
				}
				page[pack][name] = movedSlot{d.size}
			}
			key, err := movedKey(page)
			if err != nil {
				return nil, err
			}
			if _, err := put("manifest/"+key, page); err != nil {
				return nil, err
			}
			root.Pages = append(root.Pages, key)
		}
		if r.Manifest, err = movedKey(root); err != nil {
			return nil, err
		}
		if _, err := put("manifest/"+r.Manifest, root); err != nil {
			return nil, err
		}
		text, err := put(fmt.Sprintf("rev/%020d", number), r)
		if err != nil {
			return nil, err
		}
		if number == head {
			writes = append(writes, Write{Key: "state/head", Value: text})
		}
	}
	return writes, nil
}

// movedRoot lists the pages of a manifest, each of which says which service has
// which document.
type movedRoot struct {
	Pages []string `json:"pages"`
}

const movedPage = 1000 // services

// movedSlot says how long a document is, in bytes. It is kept by itself.
type movedSlot struct {
	Size int `json:"size"`
}

// movedDocument is what version 1 knew of a document.
type movedDocument struct {
	hash []byte
	size int
}

// movedKey is the SHA-256 of a value's text.
func movedKey(value any) (string, error) {
	text, err := json.Marshal(value)
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:]), err
}

// movedHead returns the number of the head, which is the newest revision.
func movedHead(ctx context.Context, tx *sql.Tx) (head uint64, err error) {
	var check int64
	err = tx.QueryRowContext(ctx, "SELECT revision, sum FROM head").Scan(&head, &check)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	if err == nil && check != (sum{}.int(int64(head)).crc()) {
		return 0, fmt.Errorf("%w: head", errDamaged)
	}
	var newest sql.Null[int64]
	if err := tx.QueryRowContext(ctx, "SELECT max(number) FROM revisions").Scan(&newest); err != nil {
		return 0, err
	}
	if newest.V != int64(head) {
		return 0, fmt.Errorf("%w: head is r%d, newest revision r%d", errDamaged, head, newest.V)
	}
	return head, nil
}

// readMoved returns a revision of version 1, without its new manifest, and the
// hashes of its documents by service.
func readMoved(ctx context.Context, tx *sql.Tx, number uint64) (r movedRevision, hashes map[string]movedDocument, err error) {
	r.Number = number
	var manifest []byte
	var at, check int64
	err = tx.QueryRowContext(ctx, "SELECT manifest, author, reason, source, source_hash, at, sum FROM revisions WHERE number = ?", int64(number)).
		Scan(&manifest, &r.Author, &r.Reason, &r.Source, &r.SourceHash, &at, &check)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: r%d is missing", errDamaged, number)
	}
	if err != nil {
		return r, nil, err
	}
	if check != (sum{}.int(int64(number)).blob(manifest).text(r.Author).text(r.Reason).text(r.Source).text(r.SourceHash).int(at).crc()) {
		return r, nil, fmt.Errorf("%w: row of r%d", errDamaged, number)
	}
	r.At = time.UnixMilli(at).UTC()
	hashes, err = readMovedManifest(ctx, tx, number)
	if err != nil {
		return r, nil, err
	}
	h := sha256.New()
	for _, service := range slices.Sorted(maps.Keys(hashes)) {
		h.Write(sum{}.text(service).blob(hashes[service].hash).buf)
	}
	if !bytes.Equal(h.Sum(nil), manifest) {
		return r, nil, fmt.Errorf("%w: manifest of r%d", errDamaged, number)
	}
	return r, hashes, nil
}

func readMovedManifest(ctx context.Context, tx *sql.Tx, number uint64) (map[string]movedDocument, error) {
	rows, err := tx.QueryContext(ctx, "SELECT service, hash, length(body) FROM manifests JOIN documents USING (hash) WHERE revision = ?", int64(number))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	hashes := make(map[string]movedDocument)
	for rows.Next() {
		var service string
		var d movedDocument
		if err := rows.Scan(&service, &d.hash, &d.size); err != nil {
			return nil, err
		}
		hashes[service] = d
	}
	return hashes, rows.Err()
}

func movedSources(ctx context.Context, tx *sql.Tx) ([]Write, error) {
	rows, err := tx.QueryContext(ctx, "SELECT source, hash, revision, at, sum FROM sources")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var writes []Write
	for rows.Next() {
		var name string
		var source struct {
			Hash     string `json:"hash"`
			Revision uint64 `json:"revision"`
		}
		var at, check int64
		if err := rows.Scan(&name, &source.Hash, &source.Revision, &at, &check); err != nil {
			return nil, err
		}
		if check != (sum{}.text(name).text(source.Hash).int(int64(source.Revision)).int(at).crc()) {
			return nil, fmt.Errorf("%w: row of a source", errDamaged)
		}
		text, err := json.Marshal(source)
		if err != nil {
			return nil, err
		}
		writes = append(writes, Write{Key: "source/" + url.PathEscape(name), Value: text})
	}
	return writes, rows.Err()
}

func movedEpoch(ctx context.Context, tx *sql.Tx) ([]Write, error) {
	var epoch, check int64
	err := tx.QueryRowContext(ctx, "SELECT value, sum FROM counters WHERE name = 'epoch'").Scan(&epoch, &check)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && check != (sum{}.text("epoch").int(epoch).crc()) {
		err = fmt.Errorf("%w: epoch", errDamaged)
	}
	if err != nil {
		return nil, err
	}
	return []Write{{Key: "epoch", Value: fmt.Append(nil, epoch)}}, nil
}
