package changes

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	grlv1 "grl/proto/grl/v1"
)

const (
	// mostExported bounds a download, in entries that were looked through; the
	// last one has the number to go on below.
	mostExported = 200_000
	// exportWithin bounds how long the reader may take for each part.
	exportWithin = 30 * time.Second
)

// export writes the entries that a query selects, a JSON object a line, as "grl
// audit --json" does.
func (s site) export(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	control := http.NewResponseController(w)
	begun := false
	for read := 0; read < mostExported; {
		f, err := s.find(r.Context(), q, readAtOnce)
		if err != nil && !begun {
			s.Fail(w, r, err)
			return
		}
		var lines []byte
		if err == nil {
			lines, err = jsonLines(f.Entries)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a download that ends early must not look whole
		}
		if !begun {
			begun = true
			h := w.Header()
			h.Set("Content-Type", "application/jsonl; charset=utf-8")
			h.Set("Content-Disposition", `attachment; filename="grl-changes.jsonl"`)
			h.Set("Cache-Control", "no-store")
		}
		_ = control.SetWriteDeadline(time.Now().Add(exportWithin)) // a recorder of tests has none
		if _, err := w.Write(lines); err != nil || f.Next == 0 {
			return
		}
		_ = control.Flush()
		read += max(f.Read, 1)
		q.Before = f.Next
	}
}

func jsonLines(entries []*grlv1.AuditEntry) ([]byte, error) {
	var b bytes.Buffer
	for _, e := range entries {
		text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(e)
		if err != nil {
			return nil, err
		}
		if err := json.Compact(&b, text); err != nil { // protojson spaces its output at random
			return nil, err
		}
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}
