package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
)

// Documents returns the normalised YAML of every service at a revision; none
// for revision 0. ErrNotFound if there is no such revision. Each document was
// compared with its hash, and all of them with that of the revision.
func (s *Store) Documents(ctx context.Context, revision uint64) (map[string][]byte, error) {
	documents, err := readDocuments(ctx, s.config.read, revision)
	if err != nil {
		return nil, fmt.Errorf("read documents of r%d: %w", revision, s.config.fail(ctx, err))
	}
	return documents, nil
}

func readDocuments(ctx context.Context, db *sql.DB, revision uint64) (map[string][]byte, error) {
	if revision == 0 {
		return map[string][]byte{}, nil
	}
	// A revision never changes, so two statements see the same one.
	r, err := readRevision(ctx, db, revision)
	if err != nil {
		return nil, err
	}
	documents, err := selectDocuments(ctx, db, revision)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(manifestHash(hashDocuments(documents)), r.manifest) {
		return nil, fmt.Errorf("%w: %w: documents do not hash to the manifest", ErrUnavailable, errDamaged)
	}
	return documents, nil
}

func selectDocuments(ctx context.Context, db *sql.DB, revision uint64) (map[string][]byte, error) {
	rows, err := db.QueryContext(ctx, "SELECT service, body FROM manifests JOIN documents USING (hash) WHERE revision = ?", int64(revision))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	documents := make(map[string][]byte)
	for rows.Next() {
		var service string
		var body []byte
		if err := rows.Scan(&service, &body); err != nil {
			return nil, err
		}
		documents[service] = body
	}
	return documents, rows.Err()
}

// insertManifest writes the documents that no revision had yet, and which
// service has which.
func insertManifest(ctx context.Context, tx *sql.Tx, revision uint64, documents, hashes map[string][]byte) error {
	for service, hash := range hashes {
		if err := ensureDocument(ctx, tx, hash, documents[service]); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO manifests (revision, service, hash) VALUES (?, ?, ?)", int64(revision), service, hash); err != nil {
			return err
		}
	}
	return nil
}

// ensureDocument writes body unless it is there. One that was damaged since an
// older revision wrote it is replaced by what it was.
func ensureDocument(ctx context.Context, tx *sql.Tx, hash, body []byte) error {
	if body == nil {
		body = []byte{} // NULL to the driver
	}
	var stored []byte
	err := tx.QueryRowContext(ctx, "SELECT body FROM documents WHERE hash = ?", hash).Scan(&stored)
	if err == nil {
		if sha256.Sum256(stored) == [sha256.Size]byte(hash) {
			return nil
		}
		_, err = tx.ExecContext(ctx, "UPDATE documents SET body = ? WHERE hash = ?", body, hash)
		return err
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO documents (hash, body) VALUES (?, ?)", hash, body)
	return err
}

// verifyConfig reads all that a controller starts from: head with its documents,
// sources and epoch.
func verifyConfig(ctx context.Context, f *file) error {
	head, err := readHead(ctx, f.read)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: head: %w", errDamaged, err)
	}
	if err != nil {
		return err
	}
	if _, err := readDocuments(ctx, f.read, head.Number); err != nil {
		return err
	}
	var newest sql.Null[int64]
	if err := f.read.QueryRowContext(ctx, "SELECT max(number) FROM revisions").Scan(&newest); err != nil {
		return err
	}
	if newest.V != int64(head.Number) {
		return fmt.Errorf("%w: head is r%d, newest revision r%d", errDamaged, head.Number, newest.V)
	}
	if _, err := readEpoch(ctx, f.read); err != nil {
		return err
	}
	return verifySources(ctx, f.read)
}
