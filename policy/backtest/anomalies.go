package backtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// maxMeta bounds meta.json, in bytes.
const maxMeta = 16 << 20

// Window is a time that was not normal. One that ends before it begins is empty.
type Window struct {
	From, To time.Time // [From, To)
	// Kind is what it was. In an outage, or where the log is missing, nothing is
	// known of the load, whatever the rows say.
	Kind string
}

// The kinds of windows of which nothing is known.
const (
	Outage  = "outage"
	Missing = "missing"
)

// readAnomalies reads the windows of a series from a file with
// {"series": {NAME: {"anomalies": [[FROM, TO, KIND], …]}}}, times in seconds since
// 1970. It returns none where there is no file or no such series.
func readAnomalies(path, name string) ([]Window, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read anomalies: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxMeta+1))
	if err != nil {
		return nil, fmt.Errorf("read anomalies: %w", err)
	}
	if len(text) > maxMeta {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxMeta)
	}
	windows, err := parseAnomalies(text, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return windows, nil
}

func parseAnomalies(text []byte, name string) ([]Window, error) {
	var meta struct {
		Series map[string]struct {
			Anomalies [][]json.RawMessage `json:"anomalies"`
		} `json:"series"`
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		return nil, err
	}
	var windows []Window
	for i, a := range meta.Series[name].Anomalies {
		var from, to int64
		var kind string
		err := fmt.Errorf("%d values", len(a))
		if len(a) == 3 {
			err = errors.Join(json.Unmarshal(a[0], &from), json.Unmarshal(a[1], &to), json.Unmarshal(a[2], &kind))
		}
		if err != nil || from < 0 || to < 0 || max(from, to) > maxUnix {
			return nil, fmt.Errorf("anomaly %d of %s: want [from, to, kind], seconds since 1970", i+1, name)
		}
		windows = append(windows, Window{time.Unix(from, 0).UTC(), time.Unix(to, 0).UTC(), kind})
	}
	return windows, nil
}
