package page

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// A region that updates by events has a second URL, which streams its content,
// beside that of the page it is on. The page prints the region with
//
//	<div id="running" hx-sse:connect="/caps/events?service=payments" hx-trigger="load, refresh" hx-swap="innerMorph">
//		@running(v)
//	</div>
//
// and the route of that URL calls Stream with the same component. hx-trigger
// needs both: load opens the stream, refresh opens it again if it ended for good
// while the tab was hidden. The region has no hx-get: it does not poll. It is
// counted into "Live" like the ones that poll; the extension of htmx reconnects
// by itself after half a second, then after longer, at most 2 s apart, and lets
// go of the connection while the tab is hidden. Rows that must keep their ticks,
// open details or place have an id. Without scripts the page shows what it was
// rendered with.

// streamLife is how long somebody whose session has ended goes on to see a stream
// at most.
const streamLife = 30 * time.Second

// messageWithin is how long a reader of a stream may take to take a message.
const messageWithin = 10 * time.Second

// Stream answers with server-sent events, each the present content of a region:
// at once, and whenever it changed when looked at anew, every so often; else the
// event "alive", which says that nothing changed. It ends when the reader goes
// away or the server shuts down, and after streamLife: the next one is asked for
// anew, by who may still look.
func (s *Site) Stream(w http.ResponseWriter, r *http.Request, every time.Duration, content func(context.Context) templ.Component) {
	control := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	tick, end := time.NewTicker(every), time.NewTimer(streamLife)
	defer tick.Stop()
	defer end.Stop()
	last := ""
	// Now and then the same again: a page may have left one out, to not take a
	// form from under the hand.
	for quiet := 0; ; {
		var b bytes.Buffer
		if err := content(r.Context()).Render(r.Context(), &b); err != nil {
			return
		}
		// So that a lost reader is noticed, and the page knows that it is live.
		message := "event: alive\n\n"
		if text := b.String(); text != last || quiet >= 5 {
			message, last, quiet = "data: "+strings.ReplaceAll(text, "\n", "\ndata: ")+"\n\n", text, 0
		} else {
			quiet++
		}
		_ = control.SetWriteDeadline(time.Now().Add(messageWithin)) // a recorder of tests has none
		if _, err := w.Write([]byte(message)); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		_ = control.SetWriteDeadline(time.Time{}) // over HTTP/2 it would run on while there is nothing to write
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.Stop:
			return
		case <-end.C:
			return
		}
	}
}
