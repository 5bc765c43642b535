package backtest

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"grl/policy"
)

// Bounds of a file.
const (
	maxSteps   = 1 << 23 // of a series: 16 years of minutes
	maxLine    = 256     // bytes
	maxRPS     = 1e12
	maxUnix    = 1 << 38 // seconds, far beyond any log
	maxStep    = 7 * day
	unixColumn = "t_unix"
)

// ReadFile reads a series from a CSV file, or a gzipped one whose name ends in
// .gz, as Read does, and its anomalies from meta.json beside it, if that is there.
// The name is that of the file without its endings.
func ReadFile(path string, step time.Duration) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	defer file.Close()
	var in io.Reader = file
	name := filepath.Base(path)
	if unpacked, ok := strings.CutSuffix(name, ".gz"); ok {
		name = unpacked
		if in, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	f, err := Read(in, step)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.Name = strings.TrimSuffix(name, ".csv")
	f.Anomalies, err = readAnomalies(filepath.Join(filepath.Dir(path), "meta.json"), f.Name)
	return f, err
}

// File is a series as it was read.
type File struct {
	Name      string
	Series    policy.Series
	Anomalies []Window
	// Highest is as in Options; nil of files, which have no seconds.
	Highest []float64
	// Repeated is how many rows had the time of the row before them, as clocks
	// that are set back make them. The higher value counts.
	Repeated int
}

// Read reads a series from lines of CSV: "t_unix,count", events in the step that
// starts then, or "t_unix,rps", the mean of the step; then rows in the order of
// time. Steps without a row are unknown. The step is the shortest time between two
// rows unless it is given; all rows lie whole steps apart. An error has the line.
func Read(in io.Reader, step time.Duration) (*File, error) {
	rows := rowReader{scanner: bufio.NewScanner(in)}
	rows.scanner.Buffer(make([]byte, maxLine), maxLine)
	if err := rows.header(); err != nil {
		return nil, err
	}
	if err := rows.read(); err != nil {
		return nil, err
	}
	seconds, err := rows.step(step)
	if err != nil {
		return nil, err
	}
	series, err := rows.series(seconds)
	if err != nil {
		return nil, err
	}
	return &File{Series: series, Repeated: rows.repeated}, nil
}

// rowReader reads the rows of one file.
type rowReader struct {
	scanner  *bufio.Scanner
	line     int // that was read last, from 1
	counts   bool
	repeated int
	times    []int64   // unix seconds, ascending
	values   []float64 // of each time
	lines    []int32   // where each stands
}

// next returns the next line.
func (r *rowReader) next() (string, bool) {
	r.line++
	if !r.scanner.Scan() {
		return "", false
	}
	return strings.TrimSuffix(r.scanner.Text(), "\r"), true
}

// failed returns why there is no further line; nil: it is the end.
func (r *rowReader) failed() error {
	err := r.scanner.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d bytes", r.line, maxLine)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", r.line, err)
	}
	return nil
}

func (r *rowReader) header() error {
	line, ok := r.next()
	if !ok {
		if err := r.failed(); err != nil {
			return err
		}
		return errors.New(`line 1: no header: want "t_unix,count" or "t_unix,rps"`)
	}
	switch line {
	case unixColumn + ",count":
		r.counts = true
	case unixColumn + ",rps":
	default:
		return fmt.Errorf(`line 1: header %q: want "t_unix,count" or "t_unix,rps"`, line)
	}
	return nil
}

func (r *rowReader) read() error {
	for {
		line, ok := r.next()
		if !ok {
			return r.failed()
		}
		at, value, err := r.row(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
		last := len(r.times) - 1
		switch {
		case last >= 0 && at < r.times[last]:
			return fmt.Errorf("line %d: %d comes after %d: want the rows in the order of time", r.line, at, r.times[last])
		case last >= 0 && at == r.times[last]:
			r.repeated++
			r.values[last] = max(r.values[last], value)
		case last+1 == maxSteps:
			return fmt.Errorf("line %d: more than %d rows", r.line, maxSteps)
		default:
			r.times, r.values, r.lines = append(r.times, at), append(r.values, value), append(r.lines, int32(r.line))
		}
	}
}

// row reads one row.
func (r *rowReader) row(line string) (at int64, value float64, err error) {
	first, second, ok := strings.Cut(line, ",")
	if !ok || strings.Contains(second, ",") {
		return 0, 0, fmt.Errorf("%q: want two columns", line)
	}
	at, err = strconv.ParseInt(first, 10, 64)
	if err != nil || at < 0 || at > maxUnix {
		return 0, 0, fmt.Errorf("time %q: want whole seconds since 1970", first)
	}
	value, err = strconv.ParseFloat(second, 64)
	if err != nil || !(value >= 0 && value <= maxRPS) {
		return 0, 0, fmt.Errorf("value %q: want a number from 0 to 1e12", second)
	}
	return at, value, nil
}

// step returns the seconds of a step, and says which row lies between two.
func (r *rowReader) step(given time.Duration) (int64, error) {
	seconds := int64(given / time.Second)
	if seconds == 0 {
		for i := 1; i < len(r.times); i++ {
			if d := r.times[i] - r.times[i-1]; seconds == 0 || d < seconds {
				seconds = d
			}
		}
	}
	switch {
	case len(r.times) == 0:
		return 0, errors.New("line 2: no rows")
	case seconds == 0:
		return 0, errors.New("line 3: one row does not tell the step: give it, or more rows")
	case seconds < 0 || time.Duration(seconds)*time.Second > maxStep || given%time.Second != 0:
		return 0, fmt.Errorf("a step of %v: want whole seconds, at most a week", max(given, time.Duration(seconds)*time.Second))
	}
	for i, at := range r.times {
		if (at-r.times[0])%seconds != 0 {
			return 0, fmt.Errorf("line %d: %d is not whole steps of %d s after the first row", r.lines[i], at, seconds)
		}
		if (at-r.times[0])/seconds >= maxSteps {
			return 0, fmt.Errorf("line %d: %d is more than %d steps of %d s after the first row", r.lines[i], at, maxSteps, seconds)
		}
	}
	return seconds, nil
}

// series returns the rows on their grid.
func (r *rowReader) series(seconds int64) (policy.Series, error) {
	last := len(r.times) - 1
	s := policy.Series{
		Start: time.Unix(r.times[0], 0).UTC(),
		Step:  time.Duration(seconds) * time.Second,
		RPS:   make([]float64, (r.times[last]-r.times[0])/seconds+1),
	}
	for i := range s.RPS {
		s.RPS[i] = policy.Unknown
	}
	scale := 1.0
	if r.counts {
		scale = 1 / float64(seconds)
	}
	for i, at := range r.times {
		v := r.values[i] * scale
		if math.IsInf(v, 0) {
			return policy.Series{}, fmt.Errorf("line %d: too much", r.lines[i])
		}
		s.RPS[(at-r.times[0])/seconds] = v
	}
	return s, nil
}
