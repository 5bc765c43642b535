package people

import (
	"crypto/sha256"
	"sync"
	"time"

	"grl/proto/access"
)

const (
	// cacheFor is how long another controller's change of an account may go
	// unnoticed; one made here counts at once.
	cacheFor = time.Second
	// outageFor is how long who was known last may go on reading while the store
	// does not answer: nobody can find out more then, nor change anything.
	outageFor = time.Hour
	// storeWithin is how long a read of the store may take, and storeAway how long
	// after one that failed the next is tried: pages must not wait for it.
	storeWithin = time.Second
	storeAway   = 5 * time.Second
	// MostCached bounds the cache; beyond it, it begins anew.
	MostCached = 10_000
)

// cache remembers whom a bearer belongs to, so that a burst of calls costs one
// read of the store. The zero value is empty.
type cache struct {
	mu         sync.Mutex
	generation uint64 // counts forget
	known      map[[sha256.Size]byte]cached
	openAt     time.Time // no account existed then; zero: not known
	failedAt   time.Time // the store did not answer then; zero: it did since
}

type cached struct {
	person access.Person
	at     time.Time // of the read
	until  time.Time // when the bearer ends
}

// begin is called before a read; keep takes its results only if nothing changed
// since.
func (c *cache) begin() (generation uint64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation, time.Now()
}

func (c *cache) keep(generation uint64, at time.Time, bearer string, p access.Person, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if c.known == nil || len(c.known) >= MostCached {
		c.known = make(map[[sha256.Size]byte]cached)
	}
	c.known[sha256.Sum256([]byte(bearer))] = cached{p, at, until}
}

func (c *cache) get(now time.Time, bearer string) (access.Person, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[sha256.Sum256([]byte(bearer))]
	return found.person, ok && now.Sub(found.at) < cacheFor && now.Before(found.until)
}

// last returns who had a bearer when the store answered last. While it does not,
// they may read.
func (c *cache) last(now time.Time, bearer string) (access.Person, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[sha256.Sum256([]byte(bearer))]
	found.person.Level = min(found.person.Level, access.Viewer)
	return found.person, ok && now.Sub(found.at) < outageFor && now.Before(found.until)
}

// lastOpen reports whether there was no account when the store answered last.
func (c *cache) lastOpen(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.openAt.IsZero() && now.Sub(c.openAt) < outageFor
}

// away reports whether the store did not answer a moment ago.
func (c *cache) away(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failedAt.IsZero() && now.Sub(c.failedAt) < storeAway
}

// answered notes whether the store did.
func (c *cache) answered(now time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failedAt = time.Time{}
	if err != nil {
		c.failedAt = now
	}
}

// keepOpen and isOpen are the same for whether there is an account.
func (c *cache) keepOpen(generation uint64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation == c.generation {
		c.openAt = at
	}
}

func (c *cache) isOpen(now time.Time) (open, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return true, !c.openAt.IsZero() && now.Sub(c.openAt) < cacheFor
}

// forget is called after each change.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.known, c.openAt = nil, time.Time{}
}
