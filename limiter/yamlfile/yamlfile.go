// Package yamlfile reads the YAML of grl's own files, strictly.
//
// It takes a subset of YAML in which what a reader sees is what holds: one
// document, keys at the start of a line, no anchors, aliases, tags, block scalars
// or tabs. All errors are reported at once, each with its place.
//
// The work is bounded: the text is cut at the keys of the file and the items of
// their lists, and the YAML library sees one such piece at a time.
package yamlfile

// MaxErrors bounds the errors of one file; the rest of the file is not read.
const MaxErrors = 100
