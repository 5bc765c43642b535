package httplimit

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// WriteDrop answers r with a refusal, in the protocol that r speaks:
//
//   - HTTP: 429, Retry-After and application/problem+json;
//   - gRPC: RESOURCE_EXHAUSTED in a response of trailers only;
//   - gRPC-Web: the same as a trailer frame in the body;
//   - Connect: resource_exhausted, with 429 for a unary call and in the end of
//     the stream for a streaming one.
//
// None of them is to be retried: x-envoy-ratelimited tells Envoy's retry policy,
// grpc-retry-pushback-ms gRPC's. RPCs carry a google.rpc.RetryInfo and a google.rpc.ErrorInfo with the reason
// GRL_DROP, the bucket and its owner. The body of r is not read.
func WriteDrop(w http.ResponseWriter, r *http.Request, d Drop) {
	m := newRefusal(d)
	w.Header().Set("X-Envoy-Ratelimited", "true")
	switch p := protocolOf(r); p {
	case grpc:
		m.writeGRPC(w)
	case grpcWeb, grpcWebText:
		m.writeGRPCWeb(w, mediaType(r), p == grpcWebText)
	case connectUnary:
		m.writeConnectUnary(w)
	case connectStream:
		m.writeConnectStream(w, mediaType(r))
	default:
		m.writeProblem(w, d)
	}
}

// doNotRetry is a pushback without a time to come back. RetryInfo, which says
// one, is for those who called.
const doNotRetry = "-1"

// refusal is a drop in words.
type refusal struct {
	bucket, owner string
	retrySeconds  int
	detail        string
}

func newRefusal(d Drop) refusal {
	// Jittered, so that callers dropped together do not come back together.
	m := refusal{retrySeconds: 1 + rand.IntN(maxRetrySeconds), detail: detail(d)}
	if d.Bucket != nil {
		m.bucket = d.Bucket.FullName()
	}
	if d.Service != nil {
		m.owner = d.Service.Owner
	}
	return m
}

// maxRetrySeconds is the longest wait that a drop asks for; the shortest is 1.
const maxRetrySeconds = 3

// problem is RFC 9457's.
type problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Bucket  string `json:"bucket"`
	Owner   string `json:"owner"`
	Explain string `json:"explain,omitempty"`
}

func (m refusal) writeProblem(w http.ResponseWriter, d Drop) {
	p := problem{
		Type:   "about:blank",
		Title:  http.StatusText(http.StatusTooManyRequests),
		Status: http.StatusTooManyRequests,
		Detail: m.detail,
		Bucket: m.bucket,
		Owner:  m.owner,
	}
	if d.PublicURL != "" {
		p.Explain = explainURL(d)
	}
	m.writeTooMany(w, "application/problem+json", jsonLine(p))
}

func explainURL(d Drop) string {
	service := ""
	if d.Bucket != nil {
		service = d.Bucket.Service
	}
	return strings.TrimSuffix(d.PublicURL, "/") + "/explain?service=" + url.QueryEscape(service) +
		"&caller=" + url.QueryEscape(d.Caller) + "&procedure=" + url.QueryEscape(d.Procedure)
}

func (m refusal) writeTooMany(w http.ResponseWriter, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Retry-After", strconv.Itoa(m.retrySeconds))
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(body) // a caller that has gone needs no answer
}

func (m refusal) writeGRPC(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", resourceExhausted)
	h.Set("Grpc-Message", percentEncode(m.detail))
	h.Set("Grpc-Retry-Pushback-Ms", doNotRetry)
	h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(m.status()))
	w.WriteHeader(http.StatusOK)
}

func (m refusal) writeGRPCWeb(w http.ResponseWriter, contentType string, text bool) {
	trailers := "grpc-status: " + resourceExhausted + "\r\ngrpc-message: " + percentEncode(m.detail) +
		"\r\ngrpc-retry-pushback-ms: " + doNotRetry + "\r\ngrpc-status-details-bin: " + base64.RawStdEncoding.EncodeToString(m.status()) + "\r\n"
	body := frame(trailerFrame, []byte(trailers))
	if text {
		body = base64.StdEncoding.AppendEncode(nil, body)
	}
	writeOK(w, contentType, body)
}

// connectError is an error of the Connect protocol.
type connectError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details []connectDetail `json:"details"`
}

type connectDetail struct {
	Type  string `json:"type"`
	Value string `json:"value"` // base64 without padding
}

func (m refusal) connectError() connectError {
	encode := base64.RawStdEncoding.EncodeToString
	return connectError{"resource_exhausted", m.detail, []connectDetail{
		{retryInfoType, encode(m.retryInfo())},
		{errorInfoType, encode(m.errorInfo())},
	}}
}

func (m refusal) writeConnectUnary(w http.ResponseWriter) {
	m.writeTooMany(w, "application/json", jsonLine(m.connectError()))
}

func (m refusal) writeConnectStream(w http.ResponseWriter, contentType string) {
	end := struct {
		Error connectError `json:"error"`
	}{m.connectError()}
	writeOK(w, contentType, frame(endOfStream, jsonLine(end)))
}

// Flags of a frame.
const (
	endOfStream  = 0x02 // Connect
	trailerFrame = 0x80 // gRPC-Web
)

// frame returns the enveloped message that gRPC-Web and Connect streams share.
func frame(flags byte, message []byte) []byte {
	b := make([]byte, 0, 5+len(message))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(len(message)))
	return append(b, message...)
}

func writeOK(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

// mediaType returns the request's content type without parameters: streams are
// answered in their own codec.
func mediaType(r *http.Request) string {
	t, _, _ := strings.Cut(first(r.Header, "Content-Type"), ";")
	return strings.TrimSpace(t)
}

func jsonLine(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // links stay readable in a terminal
	_ = e.Encode(v)        // strings and numbers always encode
	return b.Bytes()
}

// percentEncode writes a message as grpc-message wants it.
func percentEncode(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
