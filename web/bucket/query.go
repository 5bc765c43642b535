package bucket

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// query is what is looked at.
type query struct {
	Service, Name    string
	Instance, Caller string // of one cell; "": all
	Range            span
	ByRegion         bool // parts are regions, else zones
	AllCallers       bool
	Saved            uint64 // a revision that was made here; 0: none
}

// span is how far back a chart goes.
type span struct {
	value, name, note string
	step              time.Duration
	steps             int // before the one that is live
}

var spans = []span{
	{"5m", "5 min", "1-minute means", time.Minute, 5},
	{"1h", "1 h", "1-minute means", time.Minute, 60},
	{"24h", "24 h", "5-minute means", 5 * time.Minute, 288},
	{"7d", "7 d", "1-hour means", time.Hour, 168},
	{"5w", "5 w", "3-hour means", 3 * time.Hour, 280},
}

// usual is the span that is shown at first, minutes that with the finest means.
var usual, minutes = spans[2], spans[1]

// words says how long a span is.
func (s span) words() string {
	return map[string]string{"5m": "5 minutes", "1h": "hour", "24h": "24 hours", "7d": "7 days", "5w": "5 weeks"}[s.value]
}

// maxName bounds the names of a query: longer ones are of no bucket.
const maxName = 600

func clip(s string) string { return s[:min(len(s), maxName)] }

func readQuery(v url.Values) query {
	q := query{Instance: clip(v.Get("instance")), Caller: clip(v.Get("caller")), Range: usual}
	q.Service, q.Name, _ = strings.Cut(clip(v.Get("name")), "/")
	for _, s := range spans {
		if s.value == v.Get("range") {
			q.Range = s
		}
	}
	q.ByRegion = v.Get("by") == "region"
	q.AllCallers = v.Get("callers") == "all"
	q.Saved, _ = strconv.ParseUint(v.Get("saved"), 10, 64)
	return q
}

// bucket is the full name.
func (q query) bucket() string { return q.Service + "/" + q.Name }

// path returns the address of the page, or of a region of it.
func (q query) path(region string) string {
	v := url.Values{"name": {q.bucket()}}
	set := func(key, value string, is bool) {
		if is {
			v.Set(key, value)
		}
	}
	set("instance", q.Instance, q.Instance != "")
	set("caller", q.Caller, q.Caller != "")
	set("range", q.Range.value, q.Range != usual)
	set("by", "region", q.ByRegion)
	set("callers", "all", q.AllCallers)
	set("saved", strconv.FormatUint(q.Saved, 10), q.Saved != 0)
	return "/bucket" + region + "?" + v.Encode()
}

// over returns the query with another span.
func (q query) over(s span) query {
	q.Range = s
	return q
}

// of returns the query for another cell.
func (q query) of(instance, caller string) query {
	q.Instance, q.Caller = instance, caller
	return q
}
