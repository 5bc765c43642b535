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
}

type cached struct {
	person access.Person
	at     time.Time // of the read
}

// begin is called before a read; keep takes its results only if nothing changed
// since.
func (c *cache) begin() (generation uint64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation, time.Now()
}

func (c *cache) keep(generation uint64, at time.Time, bearer string, p access.Person) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if c.known == nil || len(c.known) >= MostCached {
		c.known = make(map[[sha256.Size]byte]cached)
	}
	c.known[sha256.Sum256([]byte(bearer))] = cached{p, at}
}

func (c *cache) get(now time.Time, bearer string) (access.Person, bool) {
	key := sha256.Sum256([]byte(bearer))
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[key]
	if ok && now.Sub(found.at) >= cacheFor {
		delete(c.known, key)
		ok = false
	}
	return found.person, ok
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
