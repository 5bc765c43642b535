package fleet

import "time"

// event is something that comes to pass at one time: mostly the arrival of a
// message.
type event struct {
	at     time.Duration
	order  uint64 // of being put in: events of one time come to pass in it
	kind   eventKind
	to     int32  // the host or node that it is for
	from   int32  // the one that sent it
	stream uint32 // of the link on which it came
	number uint64 // what the kind says
	report *report
	orders *orders
}

// eventKind says what an event is.
type eventKind uint8

const (
	faultBegins eventKind = iota // number: the fault's index in the plan
	faultEnds
	hostEnds   // to: a host that another one takes the place of
	secondEnds // for Watch.Second

	// Messages.
	hostJoins    // from a host to an aggregator
	nodeJoins    // from a node to its parent
	hostReports  // number: the sequence
	nodeReports  // number: the sequence
	hostDirected // number: the sequence of the host's report that is contained
	nodeDirected // number: the same of the node's report
	hostCloses   // an aggregator hears that a host's stream closed
	hostLost     // a host hears that its stream closed, or tries again
	nodeLost     // a parent hears that a node's stream closed

	// Timers of nodes.
	nodeTicks   // each law.T
	nodeWakes   // something moved
	nodeListens // number: the decider that may have gone silent
	nodeRejoins // a node opens its stream again
)

// queue has what is yet to come. It is a heap of four children, in which the
// first event of the earliest time is on top. The zero value is empty.
type queue struct {
	heap  []event
	count uint64
}

func (q *queue) len() int { return len(q.heap) }

// next returns when the first event comes to pass; there must be one.
func (q *queue) next() time.Duration { return q.heap[0].at }

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// put takes in an event.
func (q *queue) put(e event) {
	q.count++
	e.order = q.count
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		above := (i - 1) / 4
		if !e.before(&q.heap[above]) {
			break
		}
		q.heap[i] = q.heap[above]
		i = above
	}
	q.heap[i] = e
}

// take returns the first event, which there must be.
func (q *queue) take() event {
	first, last := q.heap[0], len(q.heap)-1
	e := q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= last {
			break
		}
		for c := least + 1; c < min(4*i+5, last); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(&e) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = e
	return first
}
