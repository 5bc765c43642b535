package page

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Stream answers with server-sent events, each the present content of a region:
// at once, and whenever it changed when looked at anew, every so often. It ends
// when the reader goes away or the server shuts down.
func (s *Site) Stream(w http.ResponseWriter, r *http.Request, every time.Duration, content func(context.Context) templ.Component) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // a network of tests has none
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for quiet := 0; ; {
		var b bytes.Buffer
		if err := content(r.Context()).Render(r.Context(), &b); err != nil {
			return
		}
		message := ": still here\n\n" // so that a lost reader is noticed, and the page knows it is live
		if text := b.String(); text != last || quiet >= 5 {
			message, last, quiet = "data: "+strings.ReplaceAll(text, "\n", "\ndata: ")+"\n\n", text, 0
		} else {
			quiet++
		}
		if _, err := w.Write([]byte(message)); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
