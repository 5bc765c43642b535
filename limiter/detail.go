package limiter

import (
	"cmp"
	"slices"
	"strings"
)

// detailNames is how many callers or pairs a detail report lists each.
const detailNames = 20

// Detail says who sends: the largest callers of each bucket, and the largest
// pairs of caller and procedure of each service without limits. Counts are
// since the last detail; names beyond the bounds are Other. Buckets and
// services are sorted by name; those without requests are left out.
type Detail struct {
	Buckets  []BucketDetail
	Services []ServiceDetail
}

// BucketDetail is one bucket's part of a Detail.
type BucketDetail struct {
	Bucket  string         // full name
	Callers []CallerCounts // the 20 with the most offered, largest first
	Rest    Counts         // of all other callers together
}

// CallerCounts is what one caller sent to a bucket.
type CallerCounts struct {
	Caller string
	Counts
}

// ServiceDetail is the part of a Detail for a service without limits.
type ServiceDetail struct {
	Service string
	Pairs   []PairCounts // the 20 largest, largest first
	Rest    uint64       // requests of all other pairs together
}

// PairCounts is what one caller sent to one procedure.
type PairCounts struct {
	Caller    string
	Procedure string
	Offered   uint64 // requests
}

// Detail returns who sent requests since the last call, as far as Collect has
// counted them. Call it more often than every 30 seconds of Collect's time:
// what is older and belongs to a name or configuration that is gone, is not
// in it.
func (l *Limiter) Detail() Detail {
	l.collecting.Lock()
	defer l.collecting.Unlock()
	buckets := map[string]map[string]*Counts{}
	services := map[string]map[[2]string]uint64{}
	for _, f := range l.allLeaves() {
		total := f.total(f.collected, f.detailed)
		if total == 0 {
			continue
		}
		caller, procedure := f.counted()
		if !f.table.limits() {
			addPair(services, f.table.callee.name, [2]string{caller, procedure}, total)
		}
		f.walk(f.collected, f.detailed, func(s *step, c Counts) {
			addCaller(buckets, s.cell.id.Bucket, caller, c)
		})
		copy(f.detailed, f.collected)
	}
	return Detail{Buckets: bucketDetails(buckets), Services: serviceDetails(services)}
}

// limits reports whether the service has a configured bucket. A cap alone does
// not end the search for what a service could be limited by.
func (t *table) limits() bool { return t.config != nil && len(t.config.Buckets) > 0 }

// allLeaves returns the leaves there are, retired ones too.
func (l *Limiter) allLeaves() []*leaf {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*leaf
	for s := range l.callees() {
		all = append(all, s.table.Load().leaves...)
	}
	for _, b := range l.retired {
		all = append(all, b.leaves...)
	}
	return all
}

func addCaller(buckets map[string]map[string]*Counts, bucket, caller string, c Counts) {
	if c == (Counts{}) {
		return // dropped by a bucket before
	}
	if buckets[bucket] == nil {
		buckets[bucket] = map[string]*Counts{}
	}
	if buckets[bucket][caller] == nil {
		buckets[bucket][caller] = &Counts{}
	}
	buckets[bucket][caller].add(c)
}

func addPair(services map[string]map[[2]string]uint64, service string, pair [2]string, n uint64) {
	if services[service] == nil {
		services[service] = map[[2]string]uint64{}
	}
	services[service][pair] += n
}

func bucketDetails(buckets map[string]map[string]*Counts) []BucketDetail {
	list := make([]BucketDetail, 0, len(buckets))
	for bucket, callers := range buckets {
		d := BucketDetail{Bucket: bucket}
		for caller, c := range callers {
			d.Callers = append(d.Callers, CallerCounts{caller, *c})
		}
		slices.SortFunc(d.Callers, func(a, b CallerCounts) int {
			return cmp.Or(cmp.Compare(b.Offered, a.Offered), strings.Compare(a.Caller, b.Caller))
		})
		n := min(len(d.Callers), detailNames)
		for _, c := range d.Callers[n:] {
			d.Rest.add(c.Counts)
		}
		d.Callers = slices.Clip(d.Callers[:n])
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b BucketDetail) int { return strings.Compare(a.Bucket, b.Bucket) })
	return list
}

func serviceDetails(services map[string]map[[2]string]uint64) []ServiceDetail {
	list := make([]ServiceDetail, 0, len(services))
	for service, pairs := range services {
		d := ServiceDetail{Service: service}
		for pair, n := range pairs {
			d.Pairs = append(d.Pairs, PairCounts{pair[0], pair[1], n})
		}
		slices.SortFunc(d.Pairs, func(a, b PairCounts) int {
			return cmp.Or(cmp.Compare(b.Offered, a.Offered), strings.Compare(a.Caller, b.Caller), strings.Compare(a.Procedure, b.Procedure))
		})
		n := min(len(d.Pairs), detailNames)
		for _, p := range d.Pairs[n:] {
			d.Rest += p.Offered
		}
		d.Pairs = slices.Clip(d.Pairs[:n])
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b ServiceDetail) int { return strings.Compare(a.Service, b.Service) })
	return list
}
