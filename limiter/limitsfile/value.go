package limitsfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"grl/limiter"
)

// nameKind is a kind of name: what it may consist of.
type nameKind struct {
	form *regexp.Regexp
	rule string
}

// The kinds of names. A name that begins with "_" is grl's own.
var (
	serviceName = nameKind{
		regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`),
		"letters, digits and . _ - with a letter or digit at both ends",
	}
	bucketName = serviceName
	regionName = nameKind{
		regexp.MustCompile(`^[A-Za-z0-9.:/-][A-Za-z0-9._:/-]*$`),
		"letters, digits and . _ : / - with no _ in front",
	}
	ownerName     = regionName
	callerName    = regionName
	procedureName = nameKind{
		regexp.MustCompile(`^[A-Za-z0-9.:/{}$~%@+,=-]([A-Za-z0-9._:/{}$~%@+,=-]| [A-Za-z0-9._:/{}$~%@+,=-])*$`),
		"letters, digits, . _ : / - { } $ ~ % @ + , = and single spaces between, with no _ in front",
	}
	headerName   = nameKind{regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), "the name of a header"}
	headerValue  = nameKind{regexp.MustCompile(`^[!#-\[\]-~]+$`), "a header value of ASCII characters other than space, \" and \\"}
	tierName     = nameKind{regexp.MustCompile(`^[A-Za-z0-9_-]+$`), "letters, digits, - and _"}
	metadataName = nameKind{regexp.MustCompile(`^[a-z0-9._-]+$`), "a metadata key: lower-case letters, digits and . _ -"}
)

// fault says what name should be; "" when it is.
func (k nameKind) fault(name string) (expected string) {
	switch {
	case len(name) > MaxNameBytes:
		return fmt.Sprintf("at most %d bytes", MaxNameBytes)
	case !k.form.MatchString(name):
		return k.rule
	default:
		return ""
	}
}

// text returns n's string. What YAML takes for a number, a boolean or nothing
// is no string unless it is in quotes.
func (d *decoder) text(n *node, path, expected string) (string, bool) {
	switch n.kind {
	case plainNode, quotedNode:
		return n.text, true
	case numberNode, boolNode:
		d.fail(n.place, path, n.describe(), fmt.Sprintf("%s (if it is a name, put it in quotes: %q)", expected, clip(n.text)))
	default:
		d.fail(n.place, path, n.describe(), expected)
	}
	return "", false
}

// name reads a name of kind; "" after an error.
func (d *decoder) name(n *node, path string, kind nameKind) string {
	s, ok := d.text(n, path, "a name")
	if !ok {
		return ""
	}
	if expected := kind.fault(s); expected != "" {
		d.fail(n.place, path, quote(s), expected)
		return ""
	}
	return s
}

// pattern reads a pattern over names of kind: a name, "*", or the beginning of
// a name and "*".
func (d *decoder) pattern(n *node, path string, kind nameKind) limiter.Pattern {
	s, ok := d.text(n, path, "a name, a beginning and *, or \"*\"")
	if !ok {
		return ""
	}
	if s == "*" || s == limiter.UnknownCaller && kind == callerName {
		return limiter.Pattern(s)
	}
	stem, prefix := strings.CutSuffix(s, "*")
	if prefix {
		stem = strings.TrimSuffix(stem, " ") // "POST *"
	}
	expected := kind.fault(stem)
	switch {
	case len(s) > MaxNameBytes:
		expected = fmt.Sprintf("at most %d bytes", MaxNameBytes)
	case strings.Contains(stem, "*"):
		expected = "at most one *, at the end"
	}
	if expected != "" {
		d.fail(n.place, path, quote(s), expected)
		return ""
	}
	return limiter.Pattern(s)
}

// word reads one of words; "" after an error.
func (d *decoder) word(n *node, path string, words ...string) string {
	for _, w := range words {
		if (n.kind == plainNode || n.kind == quotedNode) && n.text == w {
			return w
		}
	}
	expected := strings.Join(words, ", ")
	if i := strings.LastIndex(expected, ", "); i >= 0 {
		expected = expected[:i] + " or " + expected[i+2:]
	}
	if near := nearestWord(n.text, words); near != "" && len(words) > 1 {
		expected += fmt.Sprintf(" (perhaps %s)", near)
	}
	d.fail(n.place, path, n.describe(), expected)
	return ""
}

// number is how limits files write one: decimal, with a point or an exponent
// if need be.
var number = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$`)

// rps reads a limit in requests per second; 0 after an error.
func (d *decoder) rps(n *node, path string) float64 {
	return d.decimal(n, path, decimalRange{
		"a number of requests per second from 0.001 to 1000000000", MinRPS, MaxRPS,
		` (write "block: true" instead of the limit to drop everything)`,
	})
}

// weight reads a weight under max-min; 0 after an error.
func (d *decoder) weight(n *node, path string) float64 {
	return d.decimal(n, path, decimalRange{"a number from 0.001 to 1000", MinWeight, MaxWeight, ""})
}

// decimalRange is what a number may be.
type decimalRange struct {
	expected    string // in words
	least, most float64
	zero        string // what to write in place of 0, to be added to expected
}

// decimal reads a number in a range above 0; 0 after an error.
func (d *decoder) decimal(n *node, path string, in decimalRange) float64 {
	if n.kind != numberNode && n.kind != plainNode {
		more := ""
		if n.kind == quotedNode {
			more = ", without quotes"
		}
		d.fail(n.place, path, n.describe(), in.expected+more)
		return 0
	}
	v, err := strconv.ParseFloat(n.text, 64)
	switch {
	case err == nil && v == 0:
		d.fail(n.place, path, n.describe(), in.expected+in.zero)
	case err == nil && (v < in.least || v > in.most || v != v), isSpecial(n.text):
		d.fail(n.place, path, n.describe(), in.expected)
	case err != nil || !number.MatchString(n.text):
		d.fail(n.place, path, n.describe(), in.expected+", in decimal digits, without a unit")
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

// fixedCost reads a whole number from 1 to MaxCost; 0 after an error.
func (d *decoder) fixedCost(n *node, path string) uint32 {
	cost, err := strconv.ParseUint(n.text, 10, 32)
	if n.kind != numberNode || err != nil || cost < 1 || cost > MaxCost || !number.MatchString(n.text) {
		d.fail(n.place, path, n.describe(), fmt.Sprintf("a whole number from 1 to %d", MaxCost))
		return 0
	}
	return uint32(cost)
}

func (d *decoder) header(n *node, path string) string { return d.name(n, path, headerName) }

// metadata reads a gRPC metadata key that an application may set, with a value
// that is text.
func (d *decoder) metadata(n *node, path string) string {
	key := d.name(n, path, metadataName)
	if strings.HasSuffix(key, "-bin") || strings.HasPrefix(key, "grpc-") {
		d.fail(n.place, path, quote(key), "a metadata key without grpc- in front or -bin behind")
	}
	return key
}

func (d *decoder) isMapping(n *node, path, expected string) bool {
	if n.kind == mappingNode {
		return true
	}
	d.fail(n.place, path, n.describe(), expected)
	return false
}
