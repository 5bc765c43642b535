package roles

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"grl/proto/grl/v1/grlv1connect"
)

// A body that does not come holds a connection, whoever sends it.
const (
	bodyTime    = 10 * time.Second // of a form, or of a call to what is no service
	messageTime = time.Minute      // of a message to a service: names of many buckets are megabytes
)

// inTime ends requests whose body does not come within its time, also where next
// answers without reading it: over HTTP/1 the server reads the rest then. What
// takes larger bodies gives itself more when it begins to read.
func inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if most := bodyWithin(r); most > 0 {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(most)) // both protocols have one
			r.Body = &timedBody{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// bodyWithin returns how long the body of a request may take; 0: as long as it
// likes, or there is none.
func bodyWithin(r *http.Request) time.Duration {
	switch path := r.URL.Path; {
	case r.ContentLength == 0 || endless(r):
		return 0
	case strings.HasPrefix(path, "/grl.v1.") || strings.HasPrefix(path, "/grpc."):
		return messageTime
	default:
		return bodyTime
	}
}

// endless reports whether the body of a request is a stream of messages, which
// HTTP/1 cannot carry beside its answer.
func endless(r *http.Request) bool {
	return r.ProtoMajor > 1 &&
		(r.URL.Path == grlv1connect.TreeServiceJoinProcedure || strings.HasPrefix(r.URL.Path, "/grpc.reflection."))
}

// timedBody is a body that has time until it ends.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// Else the server, which reads on to see that the peer goes away, would take
		// the deadline for that.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
