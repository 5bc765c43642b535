package fleet

import (
	"sync"
	"time"

	"grl/web/page"
)

const (
	newSample   = 30 * time.Second // a sample is taken anew after
	oldSample   = 2 * time.Minute  // one is of no use after
	youngSample = 2 * time.Second  // rates are over at least that
	// toldEvery is how often an aggregator tells what its hosts have counted.
	toldEvery = 10 * time.Second
)

// rates turns what nodes counted since they joined into rates, by what they had
// counted half a minute to a minute ago, if somebody looked then.
type rates struct {
	mu           sync.Mutex // guards what follows
	last, before *sample    // nil: there is none; before is older
}

// sample is what nodes had counted.
type sample struct {
	at      time.Time
	counted map[nodeKey]counts
}

type nodeKey struct{ role, zone, name string }

// counts is what a node counted, or its rate per second.
type counts struct{ reports, in, out float64 }

func keyOf(n *page.Node) nodeKey { return nodeKey{n.Role, n.Zone, n.Name} }

func countsOf(n *page.Node) counts {
	return counts{float64(n.Reports), float64(n.BytesReceived), float64(n.BytesSent)}
}

// look returns the sample to compare nodes with; nil: there is none yet.
func (r *rates) look(now time.Time, nodes []page.Node) *sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && now.Sub(r.last.at) > oldSample {
		r.last, r.before = nil, nil
	}
	if r.last == nil || now.Sub(r.last.at) >= newSample {
		s := &sample{now, make(map[nodeKey]counts, len(nodes))}
		for i := range nodes {
			s.counted[keyOf(&nodes[i])] = countsOf(&nodes[i])
		}
		r.last, r.before = s, r.last
	}
	switch {
	case r.before != nil:
		return r.before
	case now.Sub(r.last.at) >= youngSample:
		return r.last
	}
	return nil
}

// rate returns what a node counts a second; false: it is not known. A node that
// joined again has counted less than before.
func (s *sample) rate(now time.Time, n *page.Node) (counts, bool) {
	if s == nil {
		return counts{}, false
	}
	over := now.Sub(s.at)
	if n.Role == "client" && over < 2*toldEvery {
		return counts{}, false
	}
	was, ok := s.counted[keyOf(n)]
	is := countsOf(n)
	if !ok || is.reports < was.reports || is.in < was.in || is.out < was.out {
		return counts{}, false
	}
	return is.less(was).over(over.Seconds()), true
}

func (c counts) less(o counts) counts {
	return counts{c.reports - o.reports, c.in - o.in, c.out - o.out}
}

func (c counts) plus(o counts) counts {
	return counts{c.reports + o.reports, c.in + o.in, c.out + o.out}
}

func (c counts) over(seconds float64) counts {
	return counts{c.reports / seconds, c.in / seconds, c.out / seconds}
}
