package roles

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
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
		into := reflect.New(strictType(reflect.TypeFor[Config](), duration)).Interface()
		if err := decodeStrict(file, text, into); err != nil {
			return err
		}
	}
	return nil
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
		return wrongValue(file, wrong)
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
