// Package limitsfile reads and writes limits files: the YAML in which the
// owner of a service says how many requests a second each caller may send to
// each procedure. docs/concepts.md has the schema.
//
// The reader is strict. Unknown and repeated keys, wrong units, numbers out of
// range, unknown words and bad names are errors, and it reports all of them at
// once, each with its place. It takes the subset of YAML of package yamlfile.
package limitsfile

import (
	"slices"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

// Bounds on what is accepted.
const (
	MaxFileBytes  = 16 << 20 // of one file
	MaxTotalBytes = 64 << 20 // of all files of a directory
	MaxBuckets    = 100_000  // of a configuration
	MaxNameBytes  = yamlfile.MaxNameBytes
	MaxListItems  = 10_000 // routes of a service, and exempt entries of it
	MaxRegions    = 200    // limits of single regions in a bucket
	MinRPS        = 0.001
	MaxRPS        = 1e9
	MaxCost       = 1_000_000
	MinWeight     = 0.001
	MaxWeight     = 1000
	MaxWeights    = 1000 // of a bucket
	MinTiers      = 2    // of a bucket
	MaxTiers      = 8
	// MaxTierCallers bounds the patterns of callers of a tier.
	MaxTierCallers = 100
	// MaxTierValues bounds the header values that tiers of a service tell
	// apart: each may take a counter for each caller and procedure.
	MaxTierValues = 64
	MaxErrors     = yamlfile.MaxErrors // of one file; the rest of the file is not read
)

// Error is one thing in a limits file that does not hold.
type Error = yamlfile.Error

// Errors are all the things that do not hold, sorted by file and place. It is
// never empty where it is returned as an error.
type Errors = yamlfile.Errors

// File is one limits file that holds by itself. Read only.
type File struct {
	// Name is the file's name as given to Parse.
	Name string
	// Service has the file's content, in the order of the file.
	Service limiter.Service

	service yamlfile.Place
	owner   yamlfile.Place // zero: the file does not say
	enforce yamlfile.Place // zero: the file does not say
	routes  []item         // of Service.Routes
	buckets []item         // of Service.Buckets
}

// item is where an item of a list stands, and its index in the file's list.
type item struct {
	yamlfile.Place
	index int
}

// Parse reads one limits file and checks all that can be told from it alone.
// The name is used in errors only. The error is an Errors.
func Parse(name string, data []byte) (*File, error) {
	f, errs := decode(name, data)
	_, more := merge([]*File{f})
	if errs = append(errs, more...); len(errs) > 0 {
		return nil, errs.Sorted()
	}
	return f, nil
}

// Merge joins files into services, sorted by name and each in the canonical
// order of Normalize. Files of one service must agree on owner and enforce as
// far as they say; routes and exempt are united. The error is an Errors.
func Merge(files []*File) ([]limiter.Service, error) {
	services, errs := merge(files)
	if len(errs) > 0 {
		return nil, errs.Sorted()
	}
	return services, nil
}

// Load parses and merges sources. It reports the errors of all of them
// together, as an Errors.
func Load(sources []Source) ([]limiter.Service, error) {
	var errs Errors
	files := make([]*File, 0, len(sources))
	for _, s := range sources {
		f, bad := decode(s.Name, s.Data)
		files, errs = append(files, f), append(errs, bad...)
	}
	services, more := merge(files)
	if errs = append(errs, more...); len(errs) > 0 {
		return nil, errs.Sorted()
	}
	return services, nil
}

// LoadDir reads the limits files below dir and loads them; see ReadDir and
// Load. The sources are returned even when they do not hold.
func LoadDir(dir string) ([]limiter.Service, []Source, error) {
	sources, err := ReadDir(dir)
	if err != nil {
		return nil, sources, err
	}
	services, err := Load(sources)
	return services, sources, err
}

// CountBuckets returns the number of buckets of services.
func CountBuckets(services []limiter.Service) int {
	n := 0
	for s := range slices.Values(services) {
		n += len(s.Buckets)
	}
	return n
}
