package controller

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store"
	"grl/store/ledger"
	"grl/web/page"
)

const (
	// mostVersions bounds the revisions that are looked at for one line: where
	// there are more, those that held for the shortest time are left out.
	mostVersions = 150
	// mostLimitLines bounds the buckets whose versions are kept.
	mostLimitLines = 100
)

// limitLines keeps which limits buckets had, as far as was asked for. The zero
// value has nothing.
type limitLines struct {
	mu   sync.Mutex                 // guards kept, not what is in it
	kept map[lineKey]*limitVersions // complete, and not changed any more
}

// lineKey is the bucket, and how far back it was looked at.
type lineKey struct {
	bucket string
	since  time.Time // a whole hour
}

// limitVersions is a bucket as of the revisions up to a head.
type limitVersions struct {
	head     uint64
	versions []limitVersion // the oldest first, each unlike the one before
}

// limitVersion is a bucket as it was from a time on.
type limitVersion struct {
	at       time.Time
	revision uint64
	author   string
	text     string          // of its item in the document
	bucket   *limiter.Bucket // nil: there was none
}

// Limits returns the limits that a bucket had.
func (v view) Limits(ctx context.Context, bucket, instance string, since time.Time) ([]page.LimitChange, error) {
	now := time.Now()
	if oldest := now.Add(-store.Keep); since.Before(oldest) {
		since = oldest
	}
	if !since.Before(now) {
		return nil, fmt.Errorf("limits of %q since %v, which is to come", bucket, since)
	}
	versions, err := v.versions(ctx, bucket, since)
	if err != nil {
		return nil, err
	}
	return limitChanges(versions, instance, since, now), nil
}

// versions returns what a bucket was at a time and from then on.
func (c *Controller) versions(ctx context.Context, bucket string, since time.Time) ([]limitVersion, error) {
	c.mu.Lock()
	head, installed, at := c.state.Head.Number, c.node.buckets[bucket], c.loaded
	c.mu.Unlock()
	if c.opts.Config.Regional() || limiter.IsCap(bucket) {
		return []limitVersion{{at: at, bucket: installed}}, nil // no revision says more
	}
	key := lineKey{bucket, since.Truncate(time.Hour)}
	known := c.limitLines.find(key)
	if known == nil || known.head != head {
		next, err := c.readVersions(ctx, bucket, key.since, head, known)
		if err != nil {
			return nil, err
		}
		c.limitLines.keep(key, next)
		known = next
	}
	return known.versions, nil
}

func (l *limitLines) find(key lineKey) *limitVersions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept[key]
}

func (l *limitLines) keep(key lineKey, v *limitVersions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= mostLimitLines || l.kept == nil {
		l.kept = make(map[lineKey]*limitVersions)
	}
	l.kept[key] = v
}

// readVersions reads the revisions up to head that held at a time or were made
// since; those that before knows are not read again.
func (c *Controller) readVersions(ctx context.Context, bucket string, since time.Time, head uint64, before *limitVersions) (*limitVersions, error) {
	next := &limitVersions{head: head}
	after := uint64(0)
	if before != nil {
		next.versions, after = slices.Clone(before.versions), before.head
	}
	list, err := c.revisionsSince(ctx, after, since)
	if err != nil {
		return nil, err
	}
	service, name, _ := strings.Cut(bucket, "/")
	for _, r := range thin(list, since, mostVersions) {
		if r.Number > head {
			break
		}
		v := limitVersion{at: r.At, revision: r.Number, author: r.Author}
		document, is, err := c.ledger.Document(ctx, r, service)
		if err == nil && is {
			err = c.readVersion(ctx, document, service, name, next.versions, &v)
		}
		if err != nil {
			return nil, err
		}
		if n := len(next.versions); n == 0 || next.versions[n-1].text != v.text {
			next.versions = append(next.versions, v)
		}
	}
	return next, nil
}

// thin leaves out revisions, the oldest first, that held for less than one of so
// many parts of the time since.
func thin(list []ledger.Revision, since time.Time, most int) []ledger.Revision {
	if len(list) <= most {
		return list
	}
	part := max(list[len(list)-1].At.Sub(since)/time.Duration(most-1), 1)
	var kept []ledger.Revision
	for i, r := range list {
		if i+1 == len(list) || list[i+1].At.Sub(since)/part != r.At.Sub(since)/part || r.At.Before(since) && !list[i+1].At.Before(since) {
			kept = append(kept, r)
		}
	}
	return kept
}

// readVersion reads a bucket from the document of its service. What is as the
// last version has it is not read again.
func (c *Controller) readVersion(ctx context.Context, d ledger.Document, service, name string, before []limitVersion, v *limitVersion) error {
	texts, err := c.ledger.Bodies(ctx, d)
	if err != nil {
		return err
	}
	v.text = bucketItem(texts[d.Hash], name)
	if v.text == "" {
		return nil
	}
	if n := len(before); n > 0 && before[n-1].text == v.text {
		v.bucket = before[n-1].bucket
		return nil
	}
	// What a bucket says holds by itself, but for procedures that must be routes.
	for _, text := range [][]byte{[]byte("service: " + strconv.Quote(service) + "\nbuckets:\n" + v.text), texts[d.Hash]} {
		var services []limiter.Service
		services, err = limitsfile.Load([]limitsfile.Source{{Name: fmt.Sprintf("r%d/%s", v.revision, service), Data: text}})
		if err != nil {
			continue
		}
		for i := range services[0].Buckets {
			if b := services[0].Buckets[i]; b.Name == name {
				v.bucket = &b
			}
		}
		return nil
	}
	return err
}

// bucketItem cuts the item of a bucket out of a document in canonical form; "" if
// it has none.
func bucketItem(document []byte, name string) string {
	for _, scalar := range []string{name, strconv.Quote(name)} {
		begin := []byte("\n  - name: " + scalar + "\n")
		at := bytes.Index(document, begin)
		if at < 0 {
			continue
		}
		item := document[at+1:]
		if end := bytes.Index(item, []byte("\n  - name: ")); end >= 0 {
			item = item[:end+1]
		}
		return string(item)
	}
	return ""
}

// limitChanges returns the limits of one instance of a bucket that had these
// versions, from a time on, with those by the hour.
func limitChanges(versions []limitVersion, instance string, since, now time.Time) []page.LimitChange {
	var out []page.LimitChange
	add := func(at time.Time, v *limitVersion, b *limiter.Bucket) {
		c := page.LimitChange{At: at, Revision: v.revision, Author: v.author}
		if b != nil {
			c.CandidateRPS, c.Behavior, c.Block = b.CandidateRPS, b.Behavior, b.Block
			if !b.Block {
				c.LimitRPS = b.Limit(instance)
			}
		}
		if at.Before(since) {
			c.At, c.Revision, c.Author, out = since, 0, "", nil
		}
		if n := len(out); n > 0 && out[n-1].LimitRPS == c.LimitRPS && out[n-1].CandidateRPS == c.CandidateRPS && out[n-1].Behavior == c.Behavior && out[n-1].Block == c.Block {
			return
		}
		out = append(out, c)
	}
	for i := range versions {
		v, end := &versions[i], now
		if i+1 < len(versions) {
			end = versions[i+1].at
		}
		if end.Before(since) && i+1 < len(versions) {
			continue
		}
		if v.bucket == nil || !v.bucket.HasHours() {
			add(v.at, v, v.bucket)
			continue
		}
		for at := v.at; at.Before(end); at = at.Truncate(quarter).Add(quarter) {
			if at.Before(since.Add(-time.Hour)) {
				at = since.Add(-time.Hour) // what is before is not looked at
			}
			b := v.bucket.At(at)
			add(at, v, &b)
		}
	}
	return out
}
