package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"grl/store"
)

// Result is what a run found of one bucket; what is in Data is the caller's.
type Result struct {
	Bucket string // full name
	Data   []byte
}

const (
	// MaxResult bounds one Result, in bytes of name and data.
	MaxResult = 64 << 10
	// MaxParts bounds the calls of AddResults of one run, about: each makes a
	// record, or several.
	MaxParts = 1000

	keyResult = "rlc-result/"
	// partResults is how much a record of results has before it is compressed, in
	// bytes.
	partResults = 512 << 10
	// maxPart bounds a record before it is compressed, in bytes.
	maxPart = 4 << 20
	// pageParts is how many records of results are read at once: it bounds the
	// memory.
	pageParts = 8
)

// ErrNotRunning says that a run is over.
var ErrNotRunning = errors.New("the run is over")

// AddResults adds to the results of a run. ErrNotFound if there is no such run,
// ErrNotRunning if it is over, ErrTooMany beyond MaxParts. After an error some
// may have been added.
func (l *Ledger) AddResults(ctx context.Context, id uint64, results []Result) error {
	if err := l.addResults(ctx, id, results); err != nil {
		return fmt.Errorf("add results of run %d: %w", id, err)
	}
	return nil
}

func (l *Ledger) addResults(ctx context.Context, id uint64, results []Result) error {
	for len(results) > 0 {
		var body []byte
		n := 0
		for n < len(results) {
			r := &results[n]
			if size := len(r.Bucket) + len(r.Data); size > MaxResult {
				return fmt.Errorf("result of %d bytes, at most %d", size, MaxResult)
			}
			if len(body) > 0 && len(body)+r.size() > partResults {
				break
			}
			body = r.encode(body)
			n++
		}
		if err := l.addPart(ctx, id, compress(body)); err != nil {
			return err
		}
		results = results[n:]
	}
	return nil
}

func (l *Ledger) addPart(ctx context.Context, id uint64, body []byte) error {
	_, err := l.editRun(ctx, id, func(r *run) (*plan, error) {
		if r.State != RunRunning {
			return nil, ErrNotRunning
		}
		if r.Parts >= MaxParts {
			return nil, fmt.Errorf("%w: there are %d records of results", ErrTooMany, r.Parts)
		}
		r.Parts++
		return &plan{writes: []store.Write{{Key: partOf(keyResult, id, r.Parts), Value: body}}}, nil
	})
	return err
}

// partOf returns the key of a part of what there is of a run.
func partOf(prefix string, id uint64, part int) string {
	return fmt.Sprintf("%s/%04d", numbered(prefix, id), part)
}

// size is at least what encode appends.
func (r *Result) size() int { return len(r.Bucket) + len(r.Data) + 2*binary.MaxVarintLen32 }

// encode appends name and data, each after its length.
func (r *Result) encode(buf []byte) []byte {
	buf = append(binary.AppendUvarint(buf, uint64(len(r.Bucket))), r.Bucket...)
	return append(binary.AppendUvarint(buf, uint64(len(r.Data))), r.Data...)
}

var errResults = errors.New("not a list of results")

// decodeResults calls fn with what encode appended. Data is a part of buf.
func decodeResults(buf []byte, fn func(Result) error) error {
	next := func() ([]byte, bool) {
		n, used := binary.Uvarint(buf)
		if used <= 0 || n > uint64(len(buf)-used) {
			return nil, false
		}
		text := buf[used : used+int(n) : used+int(n)]
		buf = buf[used+int(n):]
		return text, true
	}
	for len(buf) > 0 {
		bucket, ok := next()
		data, ok2 := next()
		if !ok || !ok2 {
			return errResults
		}
		if err := fn(Result{Bucket: string(bucket), Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// Results calls fn with the results of a run, in the order in which they were
// added, until it returns an error, which Results returns. ErrNotFound if there
// is no such run. fn may keep what it gets.
func (l *Ledger) Results(ctx context.Context, id uint64, fn func(Result) error) error {
	_, err := l.run(ctx, id)
	if err == nil {
		err = l.eachPart(ctx, numbered(keyResult, id)+"/", func(body []byte) error { return decodeResults(body, fn) })
	}
	if err != nil {
		return fmt.Errorf("read results of run %d: %w", id, err)
	}
	return nil
}

// eachPart calls fn with what is below a prefix, in order, after decompressing it.
func (l *Ledger) eachPart(ctx context.Context, prefix string, fn func(body []byte) error) error {
	after := ""
	for {
		records, err := l.engine.List(ctx, prefix, after, pageParts)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, r := range records {
			body, err := decompress(r, maxPart)
			if err == nil {
				err = fn(body)
			}
			if errors.Is(err, errResults) {
				err = fmt.Errorf("%w: record %q: %w", store.ErrDamaged, r.Key, err)
			}
			if err != nil {
				return err
			}
		}
		after = records[len(records)-1].Key
	}
}
