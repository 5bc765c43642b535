package store_test

import (
	"testing"

	"grl/store"
	"grl/store/storetest"
)

// open opens a store in a new directory until the test ends.
func open(t testing.TB) store.Engine {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestEngine(t *testing.T) { storetest.Run(t, open) }
