package desk

import (
	"maps"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

// items is a service cut into what is compared and merged by itself: each
// bucket under its full name, and under the service's name what it says besides
// its buckets. Values are YAML; "" and absent are the same.
type items map[string]string

// itemsOf returns the items of a service, none for nil.
func itemsOf(doc *document) items {
	m := items{}
	if doc == nil {
		return m
	}
	m[doc.service.Name] = attributesText(doc.service)
	for i := range doc.service.Buckets {
		b := &doc.service.Buckets[i]
		m[b.FullName()] = limitsfile.BucketText(b)
	}
	return m
}

// attributesText is never empty.
func attributesText(s *limiter.Service) string {
	bare := *s
	bare.Buckets = nil
	return string(limitsfile.Normalize(bare))
}

// isBucket reports whether an item is a bucket.
func isBucket(key string) bool { return strings.Contains(key, "/") }

// serviceOf returns the service of an item.
func serviceOf(key string) string {
	service, _, _ := strings.Cut(key, "/")
	return service
}

// keys returns the keys of several items, sorted: a service before its buckets.
func keys(of ...items) []string {
	all := items{}
	for _, m := range of {
		maps.Copy(all, m)
	}
	return slices.Sorted(maps.Keys(all))
}
