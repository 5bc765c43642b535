package caps

import (
	"crypto/rand"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"grl/limiter"
	"grl/web/format"
)

// request is the form of a cap as it was sent.
type request struct {
	// ID is that of the form: sent twice, it places one cap.
	ID                         string
	Service, Caller, Procedure string
	// To is the size that is chosen and what it stood for, "quarter 240", or
	// "block"; "": none.
	To string
	// Typed is the number in its field, Was the one that the page had put there: a
	// number that was typed since goes before a size.
	Typed, Was string
	For        string // one of spans; "": none
	Until      string // typed, which goes before it
	// Reason is typed, and goes before Ready, which was offered.
	Reason, Ready string
	Agreed        string // key of the consequence that was ticked
}

// defaultSpan is how long a cap holds unless one says otherwise.
const defaultSpan = "1h"

// block is the size that lets nothing through.
const block = "block"

// arrival is the form as a link fills it in: /caps?service=&caller=&procedure=&rps=.
func arrival(q url.Values) request {
	return request{
		ID: rand.Text(), Service: q.Get("service"), Caller: q.Get("caller"), Procedure: q.Get("procedure"),
		Typed: q.Get("rps"), Was: q.Get("rps"), For: defaultSpan,
	}
}

// posted reads a form that was sent.
func posted(f url.Values) request {
	text := func(name string) string { return strings.TrimSpace(f.Get(name)) }
	return request{
		ID: formID(f.Get("request")), Service: text("service"), Caller: text("caller"), Procedure: text("procedure"),
		To: f.Get("to"), Typed: text("rps"), Was: f.Get("was"), For: f.Get("for"), Until: text("until"),
		Reason: text("reason"), Ready: f.Get("ready"), Agreed: f.Get("yes"),
	}
}

// formID is the id of a form that was sent, as far as it can be one of ours.
func formID(id string) string {
	if len(id) != len(rand.Text()) || format.Printable(id) != id {
		return ""
	}
	return id
}

func (q *request) match() limiter.Match {
	return limiter.Match{Caller: limiter.Pattern(q.Caller), Procedure: limiter.Pattern(q.Procedure)}
}

// everything reports whether the cap is over all that its service is sent.
func (q *request) everything() bool { return anyOf(q.match().Caller) && anyOf(q.match().Procedure) }

// because is the reason as it counts.
func (q *request) because() string {
	if q.Reason != "" {
		return q.Reason
	}
	return q.Ready
}

// gate is what a cap lets through.
type gate struct {
	Block   bool
	RPS     float64 // requests per second, above 0; 0 with Block
	Size    string  // that says it: "half", "quarter", "usual" or block; "": a number was typed
	Problem string  // a sentence, if it cannot be placed; "": it can
}

func (q *request) gate() gate {
	size, number, _ := strings.Cut(q.To, " ")
	if size == "" || q.Typed != "" && q.Typed != q.Was {
		return typedGate(q.Typed)
	}
	if size == block {
		return gate{Block: true, Size: block}
	}
	g := typedGate(number)
	g.Size = size
	return g
}

// grouped are numbers with commas between thousands. Others with a comma could
// mean either, and are refused.
var grouped = regexp.MustCompile(`^\d{1,3}(,\d{3})+(\.\d*)?$`)

// Bounds on what a cap admits, in requests per second.
const (
	minRPS = 0.001
	maxRPS = 1e9
)

func typedGate(text string) gate {
	if grouped.MatchString(text) {
		text = strings.ReplaceAll(text, ",", "")
	}
	rps, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return gate{Problem: "Choose a size, or type a number."}
	case err != nil || math.IsNaN(rps):
		return gate{Problem: fmt.Sprintf("%q is not a number of requests a second.", clip(text))}
	case rps == 0:
		return gate{Problem: "A cap of 0 rps is Block; choose it."}
	case rps < minRPS || rps > maxRPS:
		return gate{Problem: "A cap is from 0.001 to 1,000,000,000 rps."}
	}
	return gate{RPS: rps}
}

// longestSpan is how long a cap may hold.
const longestSpan = 24 * time.Hour

// span returns how long the cap shall hold, or a sentence that says what is
// wrong with it.
func (q *request) span(now time.Time) (time.Duration, string) {
	if q.Until != "" {
		return spanUntil(q.Until, now)
	}
	return spanUntil(q.For, now)
}

// spanUntil reads a span, "90m", "2 h 30 min", or the time of day, UTC, that
// comes next, "22:40".
func spanUntil(text string, now time.Time) (time.Duration, string) {
	if clock, err := time.Parse("15:04", strings.TrimSpace(strings.TrimSuffix(text, "UTC"))); err == nil {
		now = now.UTC()
		end := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, time.UTC)
		if !end.After(now) {
			end = end.Add(24 * time.Hour)
		}
		return end.Sub(now), ""
	}
	d, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(text, " ", ""), "min", "m"))
	switch {
	case text == "":
		return 0, "A cap ends: say when."
	case err != nil:
		return 0, fmt.Sprintf("%q is neither a span like 45m or 2h30m nor a time like 22:40.", clip(text))
	case d > longestSpan:
		return 0, "At most 24 h."
	case d < time.Second:
		return 0, "At least 1 s."
	}
	return d, ""
}

// clip shortens what is quoted.
func clip(text string) string {
	const most = 40
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
