package page

import (
	"slices"
	"time"
)

// Fleet is the state of the tree as one controller sees it.
type Fleet struct {
	Epoch    uint64    // counts leaders or starts of the controller
	Revision uint64    // active; 0: none yet
	Loaded   time.Time // when it became active; zero: not known
	// LoadError is why the limits directory was refused, a line an error;
	// empty: it was not.
	LoadError string
	// PublicURL is where people reach the dashboard, as clients have it in
	// refusals; empty: they do not link to it.
	PublicURL string
	// WarmingUp says that not every node has reported since the start.
	WarmingUp  bool
	Controller Node   // which answers; its ages and Hosts are not looked at
	Nodes      []Node // below the controller, in any order
	// SilentZones are those from which no report comes any more, each once; a
	// region is one of them as "region NAME".
	SilentZones []string
	// AllDisabled says that nothing is dropped anywhere, Disabled of which services
	// nothing is, sorted: the kill switch.
	AllDisabled bool
	Disabled    []string
	// SilentFor is since when, and SilentIn in which region, for each of them.
	SilentFor map[string]time.Duration
	SilentIn  map[string]string
	// SilentCounted says of which of them the last known rates are still in the
	// sums.
	SilentCounted map[string]bool
	// Unheard is how many hosts the silent zones had, as far as that is known.
	Unheard int
	// Rollout of the configuration, zone by zone; nil: it is not.
	Rollout *Rollout
	// Follows says that another controller of the group leads.
	Follows bool
	// Alone says that the controller decides its part of global limits itself,
	// since its parent is silent.
	Alone bool
}

// Node is one process of the tree, as it reports about itself.
type Node struct {
	Role                        string // controller, aggregator, client
	Name, Zone, Region, Version string // empty: not known
	Revision                    uint64 // held; 0: none
	RefusedRevision             uint64 // 0: none
	RefusedReason               string
	ReportAge                   time.Duration // since its last report
	DirectiveAge                time.Duration // since it took its last directive; 0: not known
	BytesReceived, BytesSent    uint64        // from and to it, since it joined
	Reports                     uint64        // from it, since it joined
	Hosts                       int           // of an aggregator: live ones below it
	DisabledHere                bool          // its switch file has it drop nothing, of all services or of some
}

// Rollout is a configuration on its way from zone to zone.
type Rollout struct {
	Revision, From   uint64 // From is what the waiting zones hold
	Stopped          bool   // by itself, and why
	Reason           string
	Reached, Waiting []string  // zones
	StepAt           time.Time // when it reached the last one
}

// Hosts counts the hosts that report; each is below one aggregator. A silent
// zone's do not.
func (f *Fleet) Hosts() int {
	hosts := 0
	for i := range f.Nodes {
		if f.Nodes[i].Role == "aggregator" && !slices.Contains(f.SilentZones, f.Nodes[i].Zone) {
			hosts += f.Nodes[i].Hosts
		}
	}
	return hosts
}
