package verdict

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Phrase is a part of a sentence.
type Phrase struct {
	Text   string
	Strong bool // it is what matters in the sentence
	Name   bool // it comes from outside: a caller
}

// Words is what a verdict is put into words with.
type Words struct {
	LimitRPS  float64 // that is judged
	Candidate bool    // it is a candidate, not the limit of a bucket in shadow
	// EnforcedRPS is the limit that is enforced beside a candidate; 0: not known.
	EnforcedRPS float64
	Caller      string // who would be hurt most; "": not known
}

// String returns the verdict in two or three words.
func (k Kind) String() string {
	switch k {
	case WouldHurt:
		return "Would hurt"
	case Safe:
		return "Safe to enforce"
	default:
		return "Too little data"
	}
}

// Text returns phrases as plain text.
func Text(phrases []Phrase) string {
	var b strings.Builder
	for _, p := range phrases {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Headline returns the verdict as a title, without a full stop: "Would hurt
// checkout on Friday and Saturday evenings".
func (v *Verdict) Headline(w Words) []Phrase {
	if v.Kind != WouldHurt {
		return []Phrase{{Text: v.Kind.String()}}
	}
	return append([]Phrase{{Text: "Would hurt "}, w.caller()}, v.When.phrases()...)
}

// Sentences returns what there is to say of the verdict.
func (v *Verdict) Sentences(w Words) []Phrase {
	switch v.Kind {
	case WouldHurt:
		return append(v.Headline(w), Phrase{Text: v.because() + v.raise(w)})
	case Safe:
		return v.harmless(w)
	default:
		return v.wait()
	}
}

func (w *Words) caller() Phrase {
	if w.Caller == "" {
		return Phrase{Text: "its callers", Strong: true}
	}
	return Phrase{Text: w.Caller, Strong: true, Name: true}
}

func (w *Words) limit() string {
	if w.Candidate {
		return "candidate"
	}
	return "limit"
}

// because says how much of the virtual drops falls then, and what the worst day
// lost.
func (v *Verdict) because() string {
	if v.When.always() {
		return fmt.Sprintf(". The worst day, %s, would have lost %s.", v.WorstDay.Format("Mon 2 Jan"), Percent(v.WorstShare))
	}
	text := fmt.Sprintf(": %s of its virtual drops fall then", Percent(v.When.Share))
	if v.When.From > 0 || v.When.To < 24 {
		text = fmt.Sprintf(": %s of its virtual drops fall then, between %02d:00 and %02d:00 UTC", Percent(v.When.Share), v.When.From, v.When.To)
	}
	return text + fmt.Sprintf(". The worst day, %s, would have lost %s.", v.WorstDay.Format("Mon 2 Jan"), Percent(v.WorstShare))
}

// raise says what would drop nothing: of a candidate, beyond what is dropped
// anyway.
func (v *Verdict) raise(w Words) string {
	rps := v.Enough()
	if rps <= w.LimitRPS || v.Dropped <= 0 || w.Candidate && rps >= w.EnforcedRPS {
		return ""
	}
	return fmt.Sprintf(" Raise to %s rps to drop nothing.", Round(rps))
}

// Enough returns the limit in requests per second that would have dropped
// nothing: the highest second, rounded up to two digits; 0 if nothing was
// offered.
func (v *Verdict) Enough() float64 {
	if v.Highest <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v.Highest))-1)
	if unit >= 1 {
		return math.Ceil(v.Highest/unit) * unit
	}
	return math.Ceil(v.Highest) // counts are whole
}

func (v *Verdict) harmless(w Words) []Phrase {
	out := []Phrase{{Text: "Would have dropped "}, {Text: "nothing", Strong: true}}
	if v.Dropped > 0 {
		out[1].Text = Percent(v.Dropped / v.Offered)
	}
	out = append(out, Phrase{Text: " in " + days(v.Days)})
	if v.Dropped > 0 {
		out = append(out, Phrase{Text: fmt.Sprintf(", and %s of the worst day, %s", Percent(v.WorstShare), v.WorstDay.Format("Mon 2 Jan"))})
	}
	text := "."
	switch {
	case v.Offered <= 0:
		text = ". Nothing was offered either."
	case w.LimitRPS > 0:
		text = fmt.Sprintf(". The highest second reached %s of the %s.", Percent(v.Highest/w.LimitRPS), w.limit()) + v.raise(w)
	}
	return append(out, Phrase{Text: text})
}

func (v *Verdict) wait() []Phrase {
	out := []Phrase{{Text: "Judged for "}, {Text: days(v.Days), Strong: true}, {Text: "; a verdict needs 7 days with a weekend."}}
	if !v.Ready.IsZero() {
		out = append(out, Phrase{Text: fmt.Sprintf(" Ready on %s UTC.", v.Ready.UTC().Format("Mon 2 Jan, 15:04"))})
	}
	return out
}

// days prints a span in whole days, in hours below two days, and in minutes below
// two hours. It cuts, so that nothing was judged for longer than is said.
func days(d float64) string {
	switch minutes := int(math.Round(d * 24 * 60)); {
	case minutes < 1:
		return "less than 1 min"
	case minutes < 2*60:
		return fmt.Sprintf("%d min", minutes)
	case minutes < 2*24*60:
		return fmt.Sprintf("%d hours", minutes/60)
	default:
		return fmt.Sprintf("%d days", minutes/(24*60))
	}
}

// always reports whether virtual drops fall on most days, and most hours of them.
func (w *When) always() bool { return len(w.Days) >= manyDays && w.To-w.From > 12 }

// manyDays are too many to name.
const manyDays = 6

// phrases says when: " on Friday and Saturday evenings".
func (w *When) phrases() []Phrase {
	if len(w.Days) == 0 {
		return nil
	}
	part := ""
	for _, p := range dayParts {
		if p.from == w.From && p.to == w.To {
			part = p.name
		}
	}
	switch {
	case w.always():
		return []Phrase{{Text: " at "}, {Text: "any time", Strong: true}}
	case len(w.Days) < manyDays && part != "":
		return []Phrase{{Text: " on "}, {Text: dayNames(w.Days, "") + " " + part, Strong: true}}
	case len(w.Days) < manyDays:
		return []Phrase{{Text: " on "}, {Text: dayNames(w.Days, "s"), Strong: true}}
	case part != "":
		return []Phrase{{Text: " on "}, {Text: "most " + part, Strong: true}}
	default:
		return []Phrase{{Text: " on "}, {Text: "most days", Strong: true}}
	}
}

// dayNames lists days, each with an ending.
func dayNames(days []time.Weekday, ending string) string {
	switch {
	case slices.Equal(days, []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}):
		return "weekday" + ending
	case slices.Equal(days, []time.Weekday{time.Saturday, time.Sunday}):
		return "weekend" + ending
	}
	var b strings.Builder
	for i, d := range days {
		switch {
		case i > 0 && i == len(days)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(d.String() + ending)
	}
	return b.String()
}

// Percent prints a share in [0, 1] with two digits: "12%", "0.19%". "0%" is only
// for none, and "100%" from all on.
func Percent(share float64) string {
	p := share * 100
	switch {
	case !(p > 0):
		return "0%"
	case p < 0.0001:
		return "under 0.0001%"
	case p < 10:
		digits := max(0, 1-int(math.Floor(math.Log10(p))))
		text := strconv.FormatFloat(p, 'f', digits, 64)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
	case p < 100:
		return strconv.Itoa(int(min(math.Round(p), 99))) + "%"
	default:
		return strconv.Itoa(int(math.Min(math.Round(p), 1e9))) + "%"
	}
}

// Round prints a number of two digits or more with commas: "15,000".
func Round(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		return whole + "." + rest
	}
	return whole
}
