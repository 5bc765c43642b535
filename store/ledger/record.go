package ledger

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"grl/store"
)

// maxName bounds what becomes part of a key, in bytes: a name or an id. Escaped
// it may take three times that.
const maxName = 160

// key returns the key of what has a name below prefix.
func key(prefix, name string) (string, error) {
	if name == "" || len(name) > maxName {
		return "", fmt.Errorf("name of %d bytes, want 1 to %d", len(name), maxName)
	}
	return prefix + url.PathEscape(name), nil
}

// numbered returns the key of number below prefix: keys are in the order of
// numbers.
func numbered(prefix string, number uint64) string { return fmt.Sprintf("%s%020d", prefix, number) }

// encode returns the JSON of value, on one line. It panics if there is none:
// times and numbers were checked before.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("encode record: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// put writes value under key.
func put(key string, value any) store.Write { return store.Write{Key: key, Value: encode(value)} }

// decode reads a record into value, which stays as it is if there is none.
func decode(r store.Record, value any) error {
	if r.Version == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Value, value); err != nil {
		return fmt.Errorf("%w: record %q: %w", store.ErrDamaged, r.Key, err)
	}
	return nil
}

// decodeAll reads records into a list.
func decodeAll[T any](records []store.Record) ([]T, error) {
	list := make([]T, len(records))
	for i, r := range records {
		if err := decode(r, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// compress returns body in the form of gzip, which has a checksum.
func compress(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("compress record: %v", err)) // a buffer takes all
	}
	return b.Bytes()
}

// decompress is the inverse of compress, of a record of which no more than most
// bytes were compressed.
func decompress(r store.Record, most int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(r.Value))
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(z, int64(most)+1))
	}
	if err == nil && len(body) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: record %q: %w", store.ErrDamaged, r.Key, err)
	}
	return body, nil
}

func hashOf(body []byte) Hash { return sha256.Sum256(body) }
