package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"grl/limiter"
)

// Keep is how long history is kept: four weeks to learn from, and one to
// compare with.
const Keep = 5 * 7 * 24 * time.Hour

const (
	pruneRows  = 1000 // in a transaction, so that a minute never waits long
	prunePages = 1000 // given back to the file system in a transaction
)

// Prune deletes the hours that ended longer than Keep before now, the names of
// cells that have none left, and shortens the file by what that freed. It works
// in small transactions and goes on after an error where it stopped.
func (s *Store) Prune(ctx context.Context, now time.Time) error {
	oldest := now.Add(-Keep - time.Hour).UnixMilli() // an hour that starts then ended just Keep ago
	for _, batch := range []func(context.Context, int64) (done bool, err error){s.pruneHours, s.pruneCells, s.shrink} {
		for done := false; !done; {
			var err error
			if done, err = batch(ctx, oldest); err != nil {
				return fmt.Errorf("prune history: %w", err)
			}
		}
	}
	return nil
}

func (s *Store) pruneHours(ctx context.Context, oldest int64) (done bool, err error) {
	return s.deleteBatch(ctx, "DELETE FROM hours WHERE (hour, cell, zone) IN (SELECT hour, cell, zone FROM hours WHERE hour < ? LIMIT ?)", oldest)
}

func (s *Store) deleteBatch(ctx context.Context, query string, oldest int64) (done bool, err error) {
	err = s.history.update(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, query, oldest, pruneRows)
		if err != nil {
			return err
		}
		deleted, err := result.RowsAffected()
		done = deleted < pruneRows
		return err
	}, nil)
	return done, err
}

// pruneCells deletes names. The hours they had are gone, as last_hour is never
// before the newest of them.
func (s *Store) pruneCells(ctx context.Context, oldest int64) (done bool, err error) {
	var old []limiter.CellID
	err = s.history.update(ctx, func(tx *sql.Tx) error {
		if err := s.loadNames(ctx, tx); err != nil {
			return err
		}
		old = s.names.olderThan(oldest, pruneRows)
		done = len(old) < pruneRows
		quiet := context.WithoutCancel(ctx)
		remove, err := tx.PrepareContext(quiet, "DELETE FROM cells WHERE id = ?")
		if err != nil {
			return err
		}
		defer remove.Close()
		for _, cell := range old {
			id, _ := s.names.cell(cell)
			if _, err := remove.ExecContext(quiet, id); err != nil {
				return err
			}
		}
		return nil
	}, func() { s.names.remove(old) })
	if err != nil {
		s.names.forget()
	}
	return done, err
}

// shrink gives free pages back to the file system. It is done when none is left,
// or when none can be given back.
func (s *Store) shrink(ctx context.Context, _ int64) (done bool, err error) {
	err = s.history.update(ctx, func(tx *sql.Tx) error {
		before, err := freePages(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", prunePages)); err != nil {
			return err
		}
		after, err := freePages(ctx, tx)
		done = after == 0 || after >= before
		return err
	}, nil)
	return done, err
}

func freePages(ctx context.Context, q queryer) (pages int, err error) {
	err = q.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&pages)
	return pages, err
}
