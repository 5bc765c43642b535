package controller

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"grl/store"
)

// start opens the store in dir and makes a controller of it.
func start(t *testing.T, dir string, edit func(*Config)) error {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	config := Default()
	edit(&config)
	_, err = New(t.Context(), Options{Config: config, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Store: s})
	return err
}

// TestLimitsWereLost damages grl.db: a controller that begins with an empty one
// would take all limits from the fleet, so it does not, at this start and at
// later ones, unless it finds limits elsewhere or somebody says that there are
// none.
func TestLimitsWereLost(t *testing.T) {
	dir, none := t.TempDir(), func(*Config) {}
	if err := start(t, dir, none); err != nil {
		t.Fatalf("new store: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "grl.db"), bytes.Repeat([]byte("no"), 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := start(t, dir, none); err == nil || !strings.Contains(err.Error(), "grl.db.damaged-") {
			t.Fatalf("damaged store: %v, want an error that names the file set aside", err)
		}
	}
	limits := t.TempDir()
	if err := os.WriteFile(filepath.Join(limits, "shop.yaml"), []byte("service: shop\nbuckets: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(t, dir, func(c *Config) { c.Limits = limits }); err != nil {
		t.Errorf("with a limits directory: %v", err)
	}
	if err := start(t, dir, none); err != nil {
		t.Errorf("once there are limits again: %v", err)
	}

	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "grl.db"), bytes.Repeat([]byte("no"), 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(t, dir, none); err == nil {
		t.Fatal("damaged store: no error")
	}
	aside, err := filepath.Glob(filepath.Join(dir, "grl.db.damaged-*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("set aside: %v, %v", aside, err)
	}
	if err := os.Remove(aside[0]); err != nil {
		t.Fatal(err)
	}
	if err := start(t, dir, none); err != nil {
		t.Errorf("after it was taken away: %v", err)
	}
}
