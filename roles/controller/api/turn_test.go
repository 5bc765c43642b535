package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"grl/proto/grl/v1/grlv1connect"
)

// TestAppliesAtOnce sends more applies than are let in, which end when the test
// says so, and a call of another procedure.
func TestAppliesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, end := 0, make(chan struct{})
		h := make(turns, appliesAtOnce).of(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != grlv1connect.ConfigServiceApplyProcedure {
				return
			}
			entered++
			<-end
		}))
		call := func(ctx context.Context, path string) {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, path, http.NoBody))
		}
		for range appliesAtOnce + 3 {
			go call(t.Context(), grlv1connect.ConfigServiceApplyProcedure)
			synctest.Wait() // they run one after another, so entered needs no lock
		}
		if entered != appliesAtOnce {
			t.Errorf("%d applies at once, want %d", entered, appliesAtOnce)
		}
		call(t.Context(), grlv1connect.ConfigServiceRollbackProcedure)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		call(gone, grlv1connect.ConfigServiceApplyProcedure)
		for range appliesAtOnce + 3 {
			end <- struct{}{}
			synctest.Wait()
		}
		if entered != appliesAtOnce+3 {
			t.Errorf("%d applies in all, want %d", entered, appliesAtOnce+3)
		}
	})
}
