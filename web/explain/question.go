package explain

import (
	"net/url"
	"slices"
	"strings"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// Bounds of what is suggested, and of what is looked at of a URL.
const (
	mostSuggested = 500
	mostBytes     = 300 // of a name; the longest that there may be has 256
)

// question is what the form holds; it lives in the URL.
type question struct {
	Service, Caller, Procedure, Zone string
	Verified                         bool
	Bucket                           string // that was asked for in place of a request; empty: none was
	Missing                          bool   // there is no bucket of that name

	Services, Callers, Procedures []string // that are suggested
	Zones                         []page.Choice
	Errors                        map[string]string // by field
}

// parseQuestion reads a question from a URL: of a request, as links in refusals
// have it, or of the requests that a bucket selects.
func parseQuestion(v url.Values, cells []page.Cell) question {
	q := question{
		Service: name(v, "service"), Caller: name(v, "caller"), Procedure: name(v, "procedure"), Zone: name(v, "zone"),
		Verified: v.Get("verified") != "",
	}
	if bucket := name(v, "bucket"); bucket != "" {
		q.ofBucket(bucket, cells)
	}
	if q.Service == "" && (q.Caller != "" || q.Procedure != "" || q.Zone != "" || v.Has("service")) && q.Bucket == "" {
		q.Errors = map[string]string{"service": "A service is needed: the one that is called."}
	}
	return q
}

func name(v url.Values, key string) string {
	s := strings.TrimSpace(strings.ToValidUTF8(v.Get(key), "\uFFFD"))
	if len(s) > mostBytes {
		s = strings.ToValidUTF8(s[:mostBytes], "")
	}
	return s
}

// ofBucket asks for the requests that a bucket selects. A pattern stands for the
// names that it matches: as a name it is matched by itself, and by what is wider.
// Where each caller has a cell, it is the one of which most is dropped.
func (q *question) ofBucket(bucket string, cells []page.Cell) {
	q.Bucket, q.Missing = bucket, true
	q.Service, _, _ = strings.Cut(bucket, "/")
	worst := -1.0
	for i := range cells {
		c := &cells[i]
		if !strings.HasPrefix(bucket, c.Service) || c.Bucket() != bucket {
			continue
		}
		q.Missing, q.Service = false, c.Service
		ratio := c.Ratio
		if c.Caller == "" {
			ratio = 0
		}
		if ratio <= worst {
			continue
		}
		worst = ratio
		if q.Caller = strings.TrimPrefix(string(c.Selects.Caller), "*"); c.Caller != "" {
			q.Caller = c.Caller
		}
		q.Procedure = strings.TrimPrefix(string(c.Selects.Procedure), "*")
	}
}

// asks reports whether there is a request to explain.
func (q *question) asks() bool { return q.Service != "" && len(q.Errors) == 0 && !q.Missing }

// request returns the question as the API has it.
func (q *question) request() *grlv1.ExplainRequest {
	return &grlv1.ExplainRequest{Service: q.Service, Caller: q.Caller, Procedure: q.Procedure, Zone: q.Zone, Verified: q.Verified}
}

// url returns the address of the page that answers q.
func (q *question) url() string {
	v := url.Values{"service": {q.Service}}
	for key, value := range map[string]string{"caller": q.Caller, "procedure": q.Procedure, "zone": q.Zone} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Verified {
		v.Set("verified", "yes")
	}
	return "/explain?" + v.Encode()
}

// refuse puts what the API says of a field at that field.
func (q *question) refuse(text string) {
	field, rest, ok := strings.Cut(text, ": ")
	if !ok || !slices.Contains([]string{"service", "caller", "procedure", "zone"}, field) {
		field, rest = "service", text
	}
	q.Errors = map[string]string{field: format.Sentence(format.Printable(rest))}
}

// suggest fills in what one may choose from: all services with limits, zones of
// the tree, and callers and procedures that buckets of the service name.
func (q *question) suggest(cells []page.Cell, f page.Fleet) {
	services, callers, procedures, zones := make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for i := range cells {
		c := &cells[i]
		services[c.Service] = true
		if c.Service != q.Service {
			continue
		}
		for _, s := range []string{c.Caller, string(c.Selects.Caller)} {
			callers[s] = true
		}
		procedures[string(c.Selects.Procedure)] = true
	}
	for i := range f.Nodes {
		zones[f.Nodes[i].Zone] = true
	}
	zones[q.Zone] = true
	q.Services, q.Callers, q.Procedures = names(services), names(callers), names(procedures)
	q.Zones = []page.Choice{{Name: "Any"}}
	for _, z := range names(zones) {
		q.Zones = append(q.Zones, page.Choice{Value: z, Name: format.Printable(z)})
	}
}

// names returns what is a whole name of a set, sorted, as many as are suggested.
func names(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for s := range set {
		if s != "" && !strings.HasSuffix(s, "*") {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), mostSuggested)]
}

// serviceName is the service, to print.
func (q *question) serviceName() string { return format.Printable(q.Service) }

// bucketName is the bucket that was asked for, to print.
func (q *question) bucketName() string { return format.Printable(q.Bucket) }

// searchURL searches the buckets for the one that was asked for.
func (q *question) searchURL() string { return "/buckets?" + url.Values{"q": {q.Bucket}}.Encode() }

func (q *question) verified() string {
	if q.Verified {
		return "yes"
	}
	return ""
}
