package caps

import (
	"strings"

	"grl/limiter"
	"grl/web/format"
)

// anyOf reports whether a pattern selects every name.
func anyOf(p limiter.Pattern) bool { return p == "" || p == "*" }

// covers reports whether wide selects all names that narrow does.
func covers(wide, narrow limiter.Pattern) bool {
	if anyOf(wide) || wide == narrow {
		return true
	}
	prefix, ok := strings.CutSuffix(string(wide), "*")
	return ok && !anyOf(narrow) && strings.HasPrefix(strings.TrimSuffix(string(narrow), "*"), prefix)
}

// within reports whether one match selects nothing that the other does not.
func within(narrow, wide limiter.Match) bool {
	return covers(wide.Caller, narrow.Caller) && covers(wide.Procedure, narrow.Procedure)
}

// same reports whether two matches select the same requests.
func same(a, b limiter.Match) bool { return within(a, b) && within(b, a) }

// whose names the requests that a cap selects: "price-bot",
// "price-bot’s payments.v1.Charges/Create", or all of the service.
func whose(service string, m limiter.Match) string {
	caller, procedure := format.Printable(string(m.Caller)), format.Printable(string(m.Procedure))
	switch {
	case anyOf(m.Caller) && anyOf(m.Procedure):
		return format.Printable(service)
	case anyOf(m.Caller):
		return procedure
	case anyOf(m.Procedure):
		return caller
	}
	return caller + "’s " + procedure
}

// arrow says who is capped where: "price-bot → payments", "* → identity POST /login".
func arrow(service string, m limiter.Match) string {
	from, to := "*", format.Printable(service)
	if !anyOf(m.Caller) {
		from = format.Printable(string(m.Caller))
	}
	if !anyOf(m.Procedure) {
		to += " " + format.Printable(string(m.Procedure))
	}
	return from + " → " + to
}
