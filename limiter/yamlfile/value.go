package yamlfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"grl/limiter"
)

// MaxNameBytes bounds a name.
const MaxNameBytes = 256

// NameKind is a kind of name: what it may consist of.
type NameKind struct {
	Form *regexp.Regexp
	Rule string // in words
}

// The kinds of names that all files have. A name that begins with "_" is grl's
// own.
var (
	ServiceName = NameKind{
		regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`),
		"letters, digits and . _ - with a letter or digit at both ends",
	}
	RegionName = NameKind{
		regexp.MustCompile(`^[A-Za-z0-9.:/-][A-Za-z0-9._:/-]*$`),
		"letters, digits and . _ : / - with no _ in front",
	}
	CallerName = RegionName
)

// Fault says what name should be; "" when it is.
func (k NameKind) Fault(name string) (expected string) {
	switch {
	case len(name) > MaxNameBytes:
		return fmt.Sprintf("at most %d bytes", MaxNameBytes)
	case !k.Form.MatchString(name):
		return k.Rule
	default:
		return ""
	}
}

// Scalar returns n's string. What YAML takes for a number, a boolean or nothing
// is no string unless it is in quotes.
func (d *Decoder) Scalar(n *Node, path, expected string) (string, bool) {
	switch n.Kind {
	case Plain, Quoted:
		return n.Text, true
	case Number, Bool:
		d.Fail(n.Place, path, n.Describe(), fmt.Sprintf("%s (if it is a name, put it in quotes: %q)", expected, Clip(n.Text)))
	default:
		d.Fail(n.Place, path, n.Describe(), expected)
	}
	return "", false
}

// Name reads a name of kind; "" after an error.
func (d *Decoder) Name(n *Node, path string, kind NameKind) string {
	s, ok := d.Scalar(n, path, "a name")
	if !ok {
		return ""
	}
	if expected := kind.Fault(s); expected != "" {
		d.Fail(n.Place, path, Quote(s), expected)
		return ""
	}
	return s
}

// Pattern reads a pattern over names of kind: a name, "*", or the beginning of
// a name and "*"; "" after an error.
func (d *Decoder) Pattern(n *Node, path string, kind NameKind) limiter.Pattern {
	s, ok := d.Scalar(n, path, "a name, a beginning and *, or \"*\"")
	if !ok {
		return ""
	}
	if s == "*" || s == limiter.UnknownCaller && kind == CallerName {
		return limiter.Pattern(s)
	}
	stem, prefix := strings.CutSuffix(s, "*")
	if prefix {
		stem = strings.TrimSuffix(stem, " ") // "POST *"
	}
	expected := kind.Fault(stem)
	switch {
	case len(s) > MaxNameBytes:
		expected = fmt.Sprintf("at most %d bytes", MaxNameBytes)
	case strings.Contains(stem, "*"):
		expected = "at most one *, at the end"
	}
	if expected != "" {
		d.Fail(n.Place, path, Quote(s), expected)
		return ""
	}
	return limiter.Pattern(s)
}

// Word reads one of words; "" after an error.
func (d *Decoder) Word(n *Node, path string, words ...string) string {
	for _, w := range words {
		if (n.Kind == Plain || n.Kind == Quoted) && n.Text == w {
			return w
		}
	}
	expected := strings.Join(words, ", ")
	if i := strings.LastIndex(expected, ", "); i >= 0 {
		expected = expected[:i] + " or " + expected[i+2:]
	}
	if near := nearestWord(n.Text, words); near != "" && len(words) > 1 {
		expected += fmt.Sprintf(" (perhaps %s)", near)
	}
	d.Fail(n.Place, path, n.Describe(), expected)
	return ""
}

// number is how files write one: decimal, with a point or an exponent if need
// be.
var number = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$`)

// DecimalRange is what a number may be.
type DecimalRange struct {
	Expected    string // in words
	Least, Most float64
	Zero        string // what to write in place of 0, to be added to Expected
}

// Decimal reads a number in a range above 0; 0 after an error.
func (d *Decoder) Decimal(n *Node, path string, in DecimalRange) float64 {
	if n.Kind != Number && n.Kind != Plain {
		more := ""
		if n.Kind == Quoted {
			more = ", without quotes"
		}
		d.Fail(n.Place, path, n.Describe(), in.Expected+more)
		return 0
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case err == nil && v == 0:
		d.Fail(n.Place, path, n.Describe(), in.Expected+in.Zero)
	case err == nil && (v < in.Least || v > in.Most || v != v), isSpecial(n.Text):
		d.Fail(n.Place, path, n.Describe(), in.Expected)
	case err != nil || !number.MatchString(n.Text):
		d.Fail(n.Place, path, n.Describe(), in.Expected+", in decimal digits, without a unit")
	default:
		return v
	}
	return 0
}

// isSpecial reports whether YAML reads text as infinite or as not a number.
func isSpecial(text string) bool {
	switch strings.ToLower(strings.TrimLeft(text, "+-.")) {
	case "inf", "nan":
		return true
	default:
		return false
	}
}

// Whole reads a whole number in [least, most]; 0 after an error.
func (d *Decoder) Whole(n *Node, path string, least, most uint32) uint32 {
	v, err := strconv.ParseUint(n.Text, 10, 32)
	if n.Kind != Number || err != nil || uint32(v) < least || uint32(v) > most || !number.MatchString(n.Text) {
		d.Fail(n.Place, path, n.Describe(), fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return uint32(v)
}

// IsMapping reports whether n is a mapping, and notes an error if not.
func (d *Decoder) IsMapping(n *Node, path, expected string) bool {
	if n.Kind == Mapping {
		return true
	}
	d.Fail(n.Place, path, n.Describe(), expected)
	return false
}

// ItemsOf returns the items of a list of at least one and at most most; none
// after an error.
func (d *Decoder) ItemsOf(n *Node, path, expected string, most int) []*Node {
	switch {
	case n.Kind != List:
		d.Fail(n.Place, path, n.Describe(), expected)
		return nil
	case len(n.Items) == 0 || len(n.Items) > most:
		d.Fail(n.Place, path, fmt.Sprintf("a list of %d", len(n.Items)), fmt.Sprintf("1 to %d", most))
		return nil
	default:
		return n.Items
	}
}

// Regions reads a mapping from region to whatever read takes, of 1 to most
// regions, each given once. A region whose name does not hold is read under "".
func (d *Decoder) Regions(n *Node, path, expected string, most int, read func(region string, value *Node, path string)) {
	if !d.IsMapping(n, path, expected) {
		return
	}
	if len(n.Pairs) == 0 || len(n.Pairs) > most {
		d.Fail(n.Place, path, fmt.Sprintf("%d regions", len(n.Pairs)), fmt.Sprintf("1 to %d", most))
		return
	}
	seen := map[string]Place{}
	for _, p := range n.Pairs {
		name := d.Name(p.Key, path, RegionName)
		if first, again := seen[name]; again && name != "" {
			d.Problem(p.Key.Place, Join(path, name), fmt.Sprintf("given twice: first on line %d, column %d", first.Line, first.Column))
		}
		seen[name] = p.Key.Place
		read(name, p.Value, Join(path, name))
	}
}
