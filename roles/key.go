package roles

import (
	"reflect"
	"strings"
	"time"
)

// A Key is one setting of grl.toml: "client.zone". The environment variable
// GRL_CLIENT_ZONE and the flag --client.zone set the same.
type Key struct {
	Name    string // section.key, as in grl.toml
	Default any    // string, []string or time.Duration
}

// Keys lists all settings in the order of their sections.
func Keys() []Key { return keysOf(Default()) }

// keysOf lists the settings of c, each with its value in c.
func keysOf(c Config) []Key {
	var keys []Key
	sections := reflect.ValueOf(c)
	for section, value := range sections.Fields() {
		for field, value := range value.Fields() {
			keys = append(keys, Key{
				Name:    tag(section) + "." + tag(field),
				Default: value.Interface(),
			})
		}
	}
	return keys
}

// tag returns the name of a field in grl.toml.
func tag(f reflect.StructField) string { return f.Tag.Get("mapstructure") }

// Env returns the environment variable that sets the key.
func (k Key) Env() string {
	return "GRL_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// Kind says in words what the key holds.
func (k Key) Kind() string {
	switch k.Default.(type) {
	case []string:
		return "list"
	case time.Duration:
		return "duration"
	default:
		return "text"
	}
}

// parse reads a value of the kind of k as environment variables spell it:
// lists with commas, durations with a unit.
func (k Key) parse(s string) (any, error) {
	switch k.Default.(type) {
	case []string:
		list := []string{}
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	case time.Duration:
		return time.ParseDuration(s)
	default:
		return s, nil
	}
}

// nearest returns the name most like the misspelt one. A name whose last part
// fits counts as near too, so a key in the wrong section, or in none, is found.
func nearest(misspelt string, names []string) string {
	best, bestDistance, bestWhole := "", 0, 0
	for _, name := range names {
		whole := distance(misspelt, name)
		d := min(whole, distance(lastPart(misspelt), lastPart(name))+1)
		if best == "" || d < bestDistance || d == bestDistance && whole < bestWhole {
			best, bestDistance, bestWhole = name, d, whole
		}
	}
	return best
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// distance counts the bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
