package history

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"grl/limiter"
)

const (
	// maxRows and maxLine bound a file: a row a second for half a year.
	maxRows = 16_000_000
	maxLine = 4096
	// maxInstances is how many instances a file may have.
	maxInstances = 1024
	// maxSteps bounds the steps of all instances of a file together, whose memory
	// a few rows far apart can claim.
	maxSteps = 20_000_000
	// linesAtOnce is how many lines are read before a look at the context.
	linesAtOnce = 4096
)

// CSV reads a directory with a file SERVICE/BUCKET.csv or .csv.gz for each
// bucket: the header "t_unix,count" (requests in the step that starts then) or
// "t_unix,rps" (its mean), and rows. A third column "instance" tells regions,
// zones or callers apart, whichever the bucket needs.
type CSV struct{ dir string }

// NewCSV returns the source. It reads nothing yet.
func NewCSV(dir string) *CSV { return &CSV{dir: dir} }

// Name implements Source.
func (*CSV) Name() string { return "csv" }

// Read implements Source.
func (f *CSV) Read(ctx context.Context, q Query, fn func(Bucket) error) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	defer root.Close()
	for i := range q.Buckets {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := readFile(ctx, root, q, &q.Buckets[i])
		if err := ctx.Err(); err != nil { // the bucket is not to blame
			return err
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

func readFile(ctx context.Context, root *os.Root, q Query, w *Wanted) Bucket {
	file, in, err := openFile(root, w.Bucket.FullName())
	if errors.Is(err, fs.ErrNotExist) {
		return w.none(q, time.Minute)
	}
	if err != nil {
		return Bucket{Name: w.Bucket.FullName(), Err: err}
	}
	defer file.Close()
	b, err := readRows(ctx, in, q, w)
	if err != nil {
		return Bucket{Name: w.Bucket.FullName(), Err: fmt.Errorf("%s: %w", file.Name(), err)}
	}
	return b
}

func openFile(root *os.Root, name string) (*os.File, io.Reader, error) {
	file, err := openRegular(root, name+".csv")
	if err == nil {
		return file, file, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if file, err = openRegular(root, name+".csv.gz"); err != nil {
		return nil, nil, err
	}
	in, err := gzip.NewReader(file)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("%s.csv.gz: %w", name, err)
	}
	return file, in, nil
}

// openRegular opens a file that ends: a pipe or device may not.
func openRegular(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else a pipe waits for who writes
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// oldestExport is how old a file may be for what is missing at its end to be not
// there yet.
const oldestExport = 48 * time.Hour

// rowFile is the rows of a file, by instance.
type rowFile struct {
	wanted     *Wanted
	counts     bool // else rates
	instanced  bool
	byInstance map[string][]row // rates, or counts
}

// readRows reads a file and lays its rows out.
func readRows(ctx context.Context, in io.Reader, q Query, w *Wanted) (Bucket, error) {
	f := rowFile{wanted: w, byInstance: make(map[string][]row)}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, maxLine), maxLine)
	line := 0
	for scanner.Scan() {
		if line++; line > maxRows {
			return Bucket{}, fmt.Errorf("more than %d lines", maxRows)
		}
		if line%linesAtOnce == 0 && ctx.Err() != nil {
			return Bucket{}, ctx.Err()
		}
		var err error
		if text := strings.TrimSuffix(scanner.Text(), "\r"); line == 1 {
			err = f.header(text)
		} else if text != "" {
			err = f.row(text)
		}
		if err != nil {
			return Bucket{}, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return Bucket{}, fmt.Errorf("line %d: %w", line+1, err)
	}
	return f.bucket(q, w)
}

func (f *rowFile) header(text string) error {
	columns := strings.Split(text, ",")
	f.instanced = len(columns) == 3 && columns[2] == "instance"
	if len(columns) != 2 && !f.instanced || columns[0] != "t_unix" || columns[1] != "count" && columns[1] != "rps" {
		return fmt.Errorf("%q: want t_unix,count or t_unix,rps, and ,instance if there are several", text)
	}
	f.counts = columns[1] == "count"
	return nil
}

// row reads one row. What is no number where the load should be is broken data,
// not a broken file.
func (f *rowFile) row(text string) error {
	columns := strings.Split(text, ",")
	if len(columns) != 2 && !(f.instanced && len(columns) == 3) {
		return fmt.Errorf("%d columns: want those of the header", len(columns))
	}
	at, err := strconv.ParseInt(columns[0], 10, 64)
	if err != nil || at < 0 || at > math.MaxUint32 {
		return fmt.Errorf("%q is no unix time in seconds", columns[0])
	}
	load, err := strconv.ParseFloat(strings.TrimSpace(columns[1]), 64)
	if err != nil {
		load = math.NaN()
	}
	instance := ""
	if f.instanced && len(columns) == 3 {
		instance = columns[2]
	}
	if f.byInstance[instance] == nil {
		if len(f.byInstance) == maxInstances {
			return fmt.Errorf("more than %d instances", maxInstances)
		}
		if err := f.wanted.checkInstance(instance, maps.Keys(f.byInstance)); err != nil {
			return err
		}
	}
	f.byInstance[instance] = append(f.byInstance[instance], row{time.Unix(at, 0), load})
	return nil
}

// bucket lays the rows out on steps that begin with the first row.
func (f *rowFile) bucket(q Query, w *Wanted) (Bucket, error) {
	step, first := f.step(q)
	if step == 0 {
		return w.none(q, time.Minute), nil
	}
	q.To = f.end(q.To, step)
	n := int((q.To.Sub(first) + step - 1) / step)
	if n > maxSteps/len(f.byInstance) {
		return Bucket{}, fmt.Errorf("steps of %v from %v on, of %d instances: more than %d in all", step, first.UTC(), len(f.byInstance), maxSteps)
	}
	lanes := make(map[string]*lane)
	for _, instance := range slices.Sorted(maps.Keys(f.byInstance)) {
		rows := f.byInstance[instance]
		if f.counts {
			for i := range rows {
				rows[i].rps /= step.Seconds()
			}
		}
		l := newLane(first, step, n)
		l.put(rows)
		lanes[instance] = l
	}
	return f.units(q, w, lanes), nil
}

// end returns until when the rows reach, if that is shortly before to: an export
// is older than the cycle that reads it, and what came later is not missing.
func (f *rowFile) end(to time.Time, step time.Duration) time.Time {
	var newest time.Time
	for _, rows := range f.byInstance {
		for _, r := range rows {
			if end := r.at.Add(step); end.After(newest) {
				newest = end
			}
		}
	}
	if age := to.Sub(newest); age > 0 && age <= oldestExport {
		return newest
	}
	return to
}

// units makes units of the instances: one each for regions, else their sum or
// what is the highest.
func (f *rowFile) units(q Query, w *Wanted, lanes map[string]*lane) Bucket {
	b := Bucket{Name: w.Bucket.FullName()}
	names := slices.Sorted(maps.Keys(lanes))
	if w.Bucket.Scope == limiter.Region {
		for _, region := range w.instances(maps.Keys(lanes)) {
			l := lanes[region]
			if l == nil {
				l = newLane(q.From, time.Minute, 0)
			}
			b.Units = append(b.Units, l.unit(w.claim(q, region, "")))
		}
		return b
	}
	whole := lanes[names[0]]
	if len(names) > 1 {
		highest := w.Bucket.Scope == limiter.Zone || w.Bucket.PerCaller
		whole = newLane(whole.start, whole.step, len(whole.rps))
		var parts []*lane
		for _, name := range names {
			whole.fold(lanes[name], 0, highest)
			parts = append(parts, lanes[name])
		}
		if !w.Bucket.HasCallers() {
			silences(whole, parts)
		}
	}
	b.Units = []Unit{whole.unit(w.claim(q, "", ""))}
	return b
}

// step returns the commonest distance of rows of one instance, and the first
// time in the query; 0: there is no row in it. One below a minute needs as many
// rows as a history that is computed from: two rows a second apart are no reason
// to lay out weeks of seconds.
func (f *rowFile) step(q Query) (step time.Duration, first time.Time) {
	seen := make(map[time.Duration]int)
	for _, rows := range f.byInstance {
		for i, r := range rows {
			if r.at.Before(q.From) || !r.at.Before(q.To) {
				continue
			}
			if first.IsZero() || r.at.Before(first) {
				first = r.at
			}
			if i > 0 && r.at.After(rows[i-1].at) {
				seen[r.at.Sub(rows[i-1].at)]++
			}
		}
	}
	if first.IsZero() {
		return 0, first
	}
	step = time.Minute
	most := 0
	for d, n := range seen {
		if n > most || n == most && d < step {
			step, most = d, n
		}
	}
	if most < leastSteps-1 {
		step = max(step, time.Minute)
	}
	return min(step, day), first
}
