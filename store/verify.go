package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// renewable are the beginnings of the keys of what can be made anew, as package
// ledger names it: what the configurator remembers of a bucket, its runs with
// what they found, the requests that wait for one, and who is at work. Damage
// there must not cost the configuration. Decisions on proposals are not among
// them: a person made them.
var renewable = []string{"rlc-memory/", "rlc-run", "rlc-result/", "rlc-requests", "rlc-lease"}

func (r *Record) renewable() bool {
	return slices.ContainsFunc(renewable, func(prefix string) bool { return strings.HasPrefix(r.Key, prefix) })
}

// survey is what verifyRecords found in a file.
type survey struct {
	all     tally    // by the sums that the rows have
	damaged []Record // renewable ones
	sums    []int64  // that the damaged ones have
}

// verifyRecords reads all records, which must be in order to be found, and
// compares them with the tally. Damaged ones that can be made anew are deleted.
func verifyRecords(ctx context.Context, f *file) (warning string, err error) {
	want, err := readTally(ctx, f.read)
	if err != nil {
		return "", err
	}
	found, err := surveyRecords(ctx, f)
	if err != nil {
		return "", err
	}
	found.all.version = want.version
	if !found.adjust(want) {
		return "", fmt.Errorf("%w: %d records, want %d, or others", ErrDamaged, found.all.records, want.records)
	}
	if len(found.damaged) == 0 {
		return "", nil
	}
	if err := f.update(ctx, func(tx *sql.Tx) error { return found.leaveOut(ctx, tx) }, nil); err != nil {
		return "", fmt.Errorf("leave out damaged records: %w", err)
	}
	return fmt.Sprintf("grl.db: records that were damaged are left out, and made anew in time: %d, of which the first is %q",
		len(found.damaged), found.damaged[0].Key), nil
}

func surveyRecords(ctx context.Context, f *file) (found survey, err error) {
	rows, err := f.read.QueryContext(ctx, "SELECT key, value, version, sum FROM records ORDER BY key")
	if err != nil {
		return survey{}, err
	}
	defer rows.Close()
	last := ""
	for rows.Next() {
		r, sum, err := scanRow(rows.Scan)
		if err != nil {
			return survey{}, err
		}
		if r.Key <= last {
			return survey{}, fmt.Errorf("%w: record %q follows %q", ErrDamaged, r.Key, last)
		}
		last = r.Key
		if sum != r.sum() {
			if !r.renewable() {
				return survey{}, r.damaged()
			}
			found.damaged, found.sums = append(found.damaged, r), append(found.sums, sum)
		}
		found.all.records++
		found.all.digest ^= sum
	}
	return found, rows.Err()
}

// adjust reports whether the records are those of the tally. Of the damaged ones
// one may be so in its sum: it is then counted with the one it should have.
func (s *survey) adjust(want tally) bool {
	if s.all == want {
		return true
	}
	for i := range s.damaged {
		adjusted := s.all
		adjusted.digest ^= s.sums[i] ^ s.damaged[i].sum()
		if adjusted == want {
			s.all, s.sums[i] = adjusted, s.damaged[i].sum()
			return true
		}
	}
	return false
}

// leaveOut deletes the damaged records.
func (s *survey) leaveOut(ctx context.Context, tx *sql.Tx) error {
	rest := s.all
	for i, r := range s.damaged {
		if _, err := tx.ExecContext(ctx, "DELETE FROM records WHERE key = ?", r.Key); err != nil {
			return err
		}
		rest.records--
		rest.digest ^= s.sums[i]
	}
	return rest.write(ctx, tx)
}
