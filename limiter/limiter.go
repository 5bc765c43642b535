// Package limiter decides in-process, without a lock, an allocation, a clock
// or an RPC, whether a request is admitted: it finds the cells of the request,
// counts it, and samples it against their drop ratios.
//
// The ratios come from outside: a client (package grl/roles/client) writes
// them with Cell.SetRatio and reads the counts with Collect. A Limiter that
// nobody feeds admits everything: fail open is the zero value.
//
// A request's path through the files: Callee.Decide finds the leaf of its
// caller and procedure in an index, that of its variant (verified, a retry, of
// a tier by header); leaf.decide counts it and walks the cells.
// What is seen for the first time is placed and added by table, which asks
// matcher for the buckets. Collect carries the counters of leaves to cells.
package limiter

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// maxServices bounds the services without a configuration that are told apart;
// the rest share Other.
const maxServices = 1000

// Options says where a limiter runs. The zero value works.
type Options struct {
	Zone   string
	Region string
	// MaxNames bounds the distinct callers, and the distinct procedures, of a
	// service that are told apart; 0 means 10,000. Those that a configuration
	// names exactly do not count.
	MaxNames int
}

// Limiter holds the configuration, the ratios and the counts of one process.
// The zero value admits everything and is ready to use; it must not be copied.
// All methods may be called concurrently.
type Limiter struct {
	opts     Options
	services atomic.Pointer[map[string]*Callee] // the map is immutable
	full     atomic.Bool                        // no room for further services
	public   atomic.Pointer[string]             // Configuration.PublicURL; nil: none
	salt     atomic.Uint64                      // of coherent draws

	installing     sync.Mutex // serialises Install and SetDisabled; taken before collecting and mu
	configuredStop stop       // by the configuration; guarded by installing
	local          stop       // by SetDisabled; guarded by installing

	collecting sync.Mutex // serialises Collect and Detail; taken before mu

	mu         sync.Mutex           // guards what follows, and growing what is read freely
	configured int                  // services that have a configuration or caps
	rules      map[string]installed // full name of a bucket → where it is
	orphans    map[*Cell]*Callee    // cells of callers that no leaf has
	newcomers  map[CellID]uint64    // cell without its caller → ratio with which new callers begin
	retired    []*batch
	counts     *arena // of leaves
	coins      *arena
	ratios     *arena
	now        time.Duration // of the last Collect, since the first one

	start   time.Time               // now of the first Collect; guarded by collecting
	sweptAt time.Duration           // guarded by collecting
	cells   atomic.Pointer[[]*Cell] // nil when out of date; stored under mu
}

// installed is a rule with the service it belongs to.
type installed struct {
	callee *Callee
	rule   *rule
}

// New returns a limiter that admits everything until it is fed.
func New(opts Options) *Limiter { return &Limiter{opts: opts} }

// Decide counts the request and says whether to admit it.
func (l *Limiter) Decide(r Request) Decision {
	return l.Service(r.Service).DecideRequest(r)
}

// Service returns the short form for requests to one service. The result stays
// valid across configurations; keep it. Beyond 1,000 services that never had a
// configuration, further ones share the result of Other.
func (l *Limiter) Service(name string) *Callee {
	if services := l.services.Load(); services != nil {
		if s, ok := (*services)[name]; ok {
			return s
		}
		if l.full.Load() || len(name) > maxNameBytes {
			if s, ok := (*services)[Other]; ok {
				return s
			}
		}
	}
	return l.addService(name)
}

// addService returns the callee of that name, and makes it if there is room.
func (l *Limiter) addService(name string) *Callee {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setup()
	services := *l.services.Load()
	if s, ok := services[name]; ok {
		return s
	}
	if l.full.Load() || len(name) > maxNameBytes {
		return services[Other]
	}
	return l.addServices(name)[name]
}

// addServices makes callees for names that have none, and returns all;
// l.mu is held and setup is done.
func (l *Limiter) addServices(names ...string) map[string]*Callee {
	services := maps.Clone(*l.services.Load())
	for _, name := range names {
		if services[name] != nil {
			continue
		}
		s := &Callee{limiter: l, name: name, cells: map[CellID]*Cell{}}
		s.use(newTable(s, content{}, content{}.compile("", ""), l.maxNames()))
		services[name] = s
	}
	l.services.Store(&services)
	l.full.Store(len(services)-l.configured > maxServices)
	return services
}

// setup makes the zero value ready for more than reading; l.mu is held.
func (l *Limiter) setup() {
	if l.counts != nil {
		return
	}
	l.rules, l.orphans = map[string]installed{}, map[*Cell]*Callee{}
	shards := shardCount()
	l.counts, l.coins, l.ratios = newArena(shards), newArena(shards), newArena(1)
	l.services.Store(&map[string]*Callee{})
	l.addServices(Other)
}

func (l *Limiter) maxNames() int {
	if l.opts.MaxNames > 0 {
		return l.opts.MaxNames
	}
	return defaultMaxNames
}

// callees returns all callees; l.mu need not be held.
func (l *Limiter) callees() iter.Seq[*Callee] {
	services := l.services.Load()
	if services == nil {
		return func(func(*Callee) bool) {}
	}
	return maps.Values(*services)
}
