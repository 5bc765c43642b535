package page_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a-h/templ"

	"grl/web/pagetest"
)

// told renders the present text.
func told(text *atomic.Value) func(context.Context) templ.Component {
	return func(context.Context) templ.Component {
		return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, text.Load().(string))
			return err
		})
	}
}

// A stream says what a region contains at once, again when it changed, and else
// that it is alive; it ends with its reader, or when the server is to end.
func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel func(), stop chan struct{})
	}{
		{"the reader goes away", func(cancel func(), _ chan struct{}) { cancel() }},
		{"the server ends", func(_ func(), stop chan struct{}) { close(stop) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				s := pagetest.Site(pagetest.Memory{})
				s.Stop = stop
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var text atomic.Value
				text.Store("<p>one</p>\n<p>line</p>")
				w := httptest.NewRecorder()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					s.Stream(w, httptest.NewRequest(http.MethodGet, "/caps/events", nil).WithContext(ctx), time.Second, told(&text))
				}()
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				text.Store("<p>two</p>")
				time.Sleep(7 * time.Second)
				synctest.Wait()
				tt.end(cancel, stop)
				<-ended

				const one, two, alive = "data: <p>one</p>\ndata: <p>line</p>\n\n", "data: <p>two</p>\n\n", "event: alive\n\n"
				if want := one + alive + two + strings.Repeat(alive, 5) + two; w.Body.String() != want {
					t.Errorf("stream says\n%s\nwant\n%s", w.Body, want)
				}
				if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
					t.Errorf("Content-Type %q", got)
				}
			})
		})
	}
}
