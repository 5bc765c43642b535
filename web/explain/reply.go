package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"grl/limiter"
	"grl/limiter/httplimit"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
)

// reply is what a caller gets.
type reply struct {
	Dropped bool
	Text    string // headers and body of a refusal
	Linked  bool   // it has a link to this page
}

// newReply returns the refusal that a request gets which the stage drops, nil:
// none does. It is written by the code that writes it beside a workload, with a link
// to the dashboard at publicURL, if there is one.
func newReply(q *question, a *grlv1.ExplainResponse, dropping *stage, publicURL string) reply {
	if dropping == nil {
		return reply{}
	}
	b := dropping.worst.GetBucket()
	service, name, _ := strings.Cut(b.GetBucket(), "/")
	bucket := limiter.Bucket{Service: service, Name: name, Block: b.GetBlock()}
	if dropping.isCap() {
		bucket.Cap = &limiter.Cap{Author: dropping.worst.GetAuthor(), Reason: dropping.worst.GetReason()}
	}
	var out recorder
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: make(http.Header)}
	httplimit.WriteDrop(&out, request, httplimit.Drop{
		Decision:  limiter.Decision{Dropped: true, Bucket: &bucket, Service: &limiter.Service{Name: service, Owner: a.GetOwner()}},
		Caller:    q.Caller,
		Procedure: q.Procedure,
		PublicURL: publicURL,
	})
	return reply{Dropped: true, Text: out.text(), Linked: publicURL != ""}
}

// recorder is an http.ResponseWriter that keeps what is written.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *recorder) WriteHeader(status int)            { r.status = status }
func (r *recorder) Write(p []byte) (n int, err error) { return r.body.Write(p) }

// text prints the answer as on the wire, with an indented body and without its
// length.
func (r *recorder) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\n", r.status, http.StatusText(r.status))
	for _, key := range []string{"Retry-After", "Content-Type", "X-Envoy-Ratelimited"} {
		value := r.header.Get(key)
		if key == "Retry-After" {
			value = "1 to 3" // it is jittered
		}
		fmt.Fprintf(&b, "%s: %s\n", key, value)
	}
	b.WriteByte('\n')
	if err := json.Indent(&b, bytes.TrimSpace(r.body.Bytes()), "", "  "); err != nil {
		b.Write(r.body.Bytes())
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = format.Printable(l)
	}
	return strings.Join(lines, "\n")
}

// command returns the question as one asks it in a shell.
func command(q *question) string {
	text := "grl explain --service " + quoted(q.Service)
	for _, f := range []struct{ flag, value string }{{"--caller", q.Caller}, {"--procedure", q.Procedure}, {"--zone", q.Zone}} {
		if f.value != "" {
			text += " \\\n  " + f.flag + " " + quoted(f.value)
		}
	}
	if q.Verified {
		text += " \\\n  --verified"
	}
	return text
}

// quoted returns a word that a shell takes as it is.
func quoted(word string) string {
	word = format.Printable(word)
	plain := strings.IndexFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:/-", r)
	}) < 0
	if plain && word != "" && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
