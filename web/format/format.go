// Package format prints numbers, ages, times and names as the dashboard does:
// docs/dashboard.md has the rules.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// RPS prints requests per second: no decimals from 100, one below, two
// below 10, three below 0.01 (the smallest limit is 0.001), and "0" only for
// none.
func RPS(v float64) string {
	switch {
	case v <= 0:
		return "0"
	case v < 0.0005:
		return "<0.001"
	case v < 0.00995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return groupThousands(strconv.FormatFloat(v, 'f', 0, 64))
}

// Share prints a share in [0, 1] as a percentage: one decimal, two below
// 1 %, three below 0.01 %. "0" is only for none, and "100%" only for all.
func Share(share float64) string {
	p := share * 100
	switch {
	case p <= 0:
		return "0"
	case p >= 100:
		return "100%"
	case p < 0.0005:
		return "<0.001%"
	case p < 0.00995:
		return strconv.FormatFloat(p, 'f', 3, 64) + "%"
	case p < 0.995:
		return strconv.FormatFloat(p, 'f', 2, 64) + "%"
	case p >= 99.95:
		return ">99.9%"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + "%"
}

// Headroom prints how far a limit stands above a peak, as a share of the peak, in
// whole per cent: "25%" of 1.25 times the peak, "−19%" below it, "×12" where it is
// more than 11 times as high. "0%" is also for what is nearly none.
func Headroom(ratio float64) string {
	if ratio > 11 {
		return "×" + Size(ratio)
	}
	return groupThousands(strconv.Itoa(int(math.Round((ratio-1)*100)))) + "%"
}

// Count prints a whole number with commas.
func Count[N int | uint64](n N) string { return groupThousands(fmt.Sprint(n)) }

// groupThousands puts commas into a row of digits, and U+2212 for a minus.
func groupThousands(digits string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = "−", rest
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Age prints how long ago something was: 0.3 s, 12 s, 9 min 36 s,
// 2 h 14 min. It cuts, so that nothing looks older than it is.
func Age(d time.Duration) string {
	switch s := int(d / time.Second); {
	case d <= 0:
		return "0.0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%d s", s, int(d%time.Second/(100*time.Millisecond)))
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	default:
		return fmt.Sprintf("%s h %d min", Count(s/3600), s%3600/60)
	}
}

// Bytes prints a sum of bytes in units of 1000: 812 B, 3.1 MB, 104 MB.
func Bytes(n uint64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for _, next := range []float64{999_500, 999_500_000, 999_500_000_000} {
		if float64(n) >= next {
			unit++
		}
	}
	for range unit + 1 {
		v /= 1000
	}
	decimals := 0
	if v < 99.95 {
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + []string{"kB", "MB", "GB", "TB"}[unit]
}

// Stamp is a time, ready to print. The server cannot know the viewer's zone:
// it prints UTC and says so; the script prints the viewer's time in its place.
type Stamp struct {
	Machine string // RFC 3339, for datetime
	Title   string // "2026-11-29 21:40:02 UTC"
	Clock   string // "21:40:02 UTC"
	Text    string // "21:40 UTC", "Thu 18:00 UTC" or "14 Feb"
}

// NewStamp prepares t, which is not after now.
func NewStamp(t, now time.Time) Stamp {
	t = t.UTC()
	s := Stamp{
		Machine: t.Format(time.RFC3339),
		Title:   t.Format("2006-01-02 15:04:05 UTC"),
		Clock:   t.Format("15:04:05 UTC"),
	}
	switch age := now.Sub(t); {
	case age < 24*time.Hour:
		s.Text = t.Format("15:04 UTC")
	case age < 7*24*time.Hour:
		s.Text = t.Format("Mon 15:04 UTC")
	default:
		s.Text = t.Format("2 Jan")
	}
	return s
}

// Printable returns a name from outside with what is no character, or cannot be
// seen, replaced by U+FFFD: control characters, and those that turn the writing
// direction, which a <bdi> alone does not contain. In a name that is nothing but
// space, each is printed as U+2423, an open box: nobody could see or click it.
func Printable(name string) string {
	blank := strings.TrimSpace(name) == ""
	return strings.Map(func(r rune) rune {
		if blank && unicode.Is(unicode.Zs, r) {
			return '\u2423'
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
}

// Moment prints a time in Unix milliseconds: "2026-11-29 21:40 UTC".
func Moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }

// Plural prints a count with its noun: "1 cell", "1,240 cells".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Sentence returns a text, such as an error's, as people write one: with a
// capital and a full stop. Empty stays empty.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// Size prints a number on an axis, or in a sum, with three digits: 2.45M, 12.5k,
// 900.
func Size(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G", "T"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	switch {
	case v <= 0:
		return "0"
	case v < 9.995:
		return trimZeros(strconv.FormatFloat(v, 'f', 2, 64)) + unit
	case v < 99.95:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64)) + unit
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + unit
}

func trimZeros(digits string) string {
	return strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
}

// Left prints the time that something still runs: 8:52, 2:14:07; 0:00 once it
// is over.
func Left(d time.Duration) string {
	s := int(max(0, d+time.Second-1) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
