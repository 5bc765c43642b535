package bucket

import (
	"fmt"
	"net/url"
	"strconv"
)

func (m mark) number() string { return strconv.Itoa(m.Number) }

// servicePath is the table of the buckets of a service.
func servicePath(service string) string {
	return "/buckets?" + url.Values{"q": {service + "/"}}.Encode()
}

// revisionPath is what one revision changed.
func revisionPath(revision uint64) string { return fmt.Sprintf("/changes?revision=%d", revision) }

// newPath is the form of a new bucket.
func newPath(service, name string) string {
	return "/bucket/new?" + url.Values{"service": {service}, "bucket": {name}}.Encode()
}

// changesPath is all that was done to a bucket.
func changesPath(bucket string) string {
	return "/changes?" + url.Values{"subject": {bucket}}.Encode()
}
