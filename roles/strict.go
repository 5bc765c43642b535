package roles

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// checkStrict refuses unknown keys and values of the wrong kind in the text of
// a grl.toml, with their lines; viper alone would ignore the one and guess at
// the other.
func checkStrict(file string, text []byte) error {
	// Twice, since one way reports where a number stands that should be a
	// duration, the other where a duration is misspelt.
	for _, duration := range []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[durationText]()} {
		if err := decodeAll(file, text, strictType(reflect.TypeFor[Config](), duration)); err != nil {
			return err
		}
	}
	return nil
}

// maxWrongValues bounds the errors of one file.
const maxWrongValues = 100

// decodeAll returns all that is wrong. The decoder stops at the first value of
// a wrong kind, so its line is blanked and the text read again.
func decodeAll(file string, text []byte, into reflect.Type) error {
	lines := bytes.Split(bytes.Clone(text), []byte("\n"))
	var errs []error
	for len(errs) < maxWrongValues {
		err := decodeStrict(file, bytes.Join(lines, []byte("\n")), reflect.New(into).Interface())
		var wrong *toml.DecodeError
		if !errors.As(err, &wrong) {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, wrongValue(file, wrong))
		line, _ := wrong.Position()
		if line < 1 || line > len(lines) || !bytes.ContainsRune(lines[line-1], '=') {
			break // not one value in one line: what follows from it is not known
		}
		lines[line-1] = nil
	}
	return errors.Join(errs...)
}

func decodeStrict(file string, text []byte, into any) error {
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into)
	var missing *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &missing):
		var errs []error
		for _, e := range missing.Errors {
			errs = append(errs, unknownKey(file, &e))
		}
		return errors.Join(errs...)
	case errors.As(err, &wrong):
		return wrong
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func unknownKey(file string, e *toml.DecodeError) error {
	line, _ := e.Position()
	name := strings.Join(e.Key(), ".")
	sections, keys := names()
	if !strings.Contains(name, ".") && strings.Contains(e.Error(), "table") {
		return fmt.Errorf("%s:%d: unknown section [%s]; nearest is [%s]", file, line, name, nearest(name, sections))
	}
	return fmt.Errorf("%s:%d: unknown key %q; nearest is %q", file, line, name, nearest(name, keys))
}

func wrongValue(file string, e *toml.DecodeError) error {
	line, _ := e.Position()
	name := strings.Join(e.Key(), ".")
	for _, k := range Keys() {
		if k.Name == name {
			return fmt.Errorf("%s:%d: %s: not a %s like %s", file, line, name, k.Kind(), example(k))
		}
	}
	if sections, _ := names(); slices.Contains(sections, name) {
		return fmt.Errorf("%s:%d: %s: not a section like [%s]", file, line, name, name)
	}
	return fmt.Errorf("%s:%d: %s", file, line, strings.TrimPrefix(e.Error(), "toml: "))
}

func example(k Key) string {
	switch k.Default.(type) {
	case []string:
		return `["a", "b"]`
	case time.Duration:
		return `"10s"`
	default:
		return `"abc"`
	}
}

// names lists the sections and the keys of grl.toml.
func names() (sections, keys []string) {
	for _, k := range Keys() {
		keys = append(keys, k.Name)
		if s, _, _ := strings.Cut(k.Name, "."); len(sections) == 0 || sections[len(sections)-1] != s {
			sections = append(sections, s)
		}
	}
	return sections, keys
}

// strictType returns t, a struct of settings, with the tags of mapstructure as
// those of TOML and with durations of the given type.
func strictType(t, duration reflect.Type) reflect.Type {
	fields := reflect.VisibleFields(t)
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Type == reflect.TypeFor[time.Duration]():
			f.Type = duration
		case f.Type.Kind() == reflect.Struct:
			f.Type = strictType(f.Type, duration)
		}
		f.Tag = reflect.StructTag(`toml:"` + tag(*f) + `"`)
	}
	return reflect.StructOf(fields)
}

// durationText accepts durations with a unit.
type durationText struct{}

// UnmarshalText implements encoding.TextUnmarshaler.
func (durationText) UnmarshalText(text []byte) error {
	_, err := time.ParseDuration(string(text))
	return err
}
