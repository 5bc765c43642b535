// Package verdict judges a limit that is not enforced, a bucket in shadow or a
// candidate, by what it would have dropped: is it safe to enforce, and if not,
// whom would it hurt and when. It is pure. Days and hours are those of UTC.
package verdict

import (
	"math"
	"time"
)

// Kind is the verdict in a word.
type Kind uint8

const (
	// TooLittle says that less than 7 days with a weekend are known.
	TooLittle Kind = iota
	// WouldHurt says that somebody would have lost more than 0.1 % of a day.
	WouldHurt
	// Safe says that nobody would have.
	Safe
)

const (
	// NeedHours is how many hours must be known for a verdict: 7 days.
	NeedHours = 7 * 24
	// needOfDay is how many hours of a Saturday, and of a Sunday, must be.
	needOfDay = 24
	// Hurts is the share of a day's requests above which their loss hurts.
	Hurts = 0.001
)

// Hour is what one hour counted, in requests.
type Hour struct {
	Known   bool // there is history of the hour, maybe of nothing
	Offered float64
	Dropped float64 // would have been; at most Offered
	Highest float64 // offered in the highest second
}

// Verdict is what hours say of a limit. The zero value is too little data.
type Verdict struct {
	Kind Kind
	// From is the start of the first hour that is known, Days how many days are:
	// whole hours, unless who asks knows that it is less.
	From time.Time
	Days float64
	// Ready is when enough will be known, if there is history of every hour until
	// then; zero: it is, or nothing is known yet.
	Ready time.Time
	// Offered and Dropped are all requests of the hours known, and those that
	// would have been dropped.
	Offered, Dropped float64
	// Highest is what was offered in the highest second, in requests: a limit of
	// as many a second would have dropped nothing.
	Highest float64
	// ByHour is the share of requests that would have been dropped, by day of the
	// week, Monday first, and hour of the day, in UTC; NaN: nothing is known.
	ByHour [7][24]float64
	// When is when most of them would have been.
	When When
	// WorstDay is the day, UTC, of which the largest share would have been
	// dropped, and WorstShare that share, in [0, 1].
	WorstDay   time.Time
	WorstShare float64
}

// Judge returns what hours say, of which the first one starts at from, cut to a
// whole hour.
func Judge(from time.Time, hours []Hour) Verdict {
	from = from.UTC().Truncate(time.Hour)
	t := tally{from: from}
	for i, h := range hours {
		if h.Known {
			t.add(from.Add(time.Duration(i)*time.Hour), h)
		}
	}
	return t.verdict(from.Add(time.Duration(len(hours)) * time.Hour))
}

// tally sums hours.
type tally struct {
	from   time.Time
	first  time.Time // hour known
	known  int
	ofDay  [7]int // hours known, Monday first
	total  Hour
	byHour [7][24]Hour
	day    Hour // the one under way
	dayAt  time.Time
	worst  float64
	worstT time.Time
}

func (t *tally) add(at time.Time, h Hour) {
	if t.known == 0 {
		t.first = at
	}
	day := at.Truncate(24 * time.Hour)
	if day != t.dayAt {
		t.endDay()
		t.dayAt = day
	}
	weekday := Monday(at.Weekday())
	t.known++
	t.ofDay[weekday]++
	for _, sum := range []*Hour{&t.total, &t.day, &t.byHour[weekday][at.Hour()]} {
		sum.Known = true
		sum.Offered += h.Offered
		sum.Dropped += h.Dropped
		sum.Highest = max(sum.Highest, h.Highest)
	}
}

// endDay judges the day under way.
func (t *tally) endDay() {
	if share := t.day.share(); t.day.Known && (t.worstT.IsZero() || share > t.worst) {
		t.worst, t.worstT = share, t.dayAt
	}
	t.day = Hour{}
}

// share returns what would have been dropped of what was offered, in [0, 1].
func (h *Hour) share() float64 {
	switch {
	case !h.Known:
		return math.NaN()
	case h.Offered <= 0:
		return 0
	default:
		return min(h.Dropped/h.Offered, 1)
	}
}

// verdict judges what was added, up to end.
func (t *tally) verdict(end time.Time) Verdict {
	t.endDay()
	v := Verdict{
		Kind: t.kind(), From: t.first, Days: float64(t.known) / 24,
		Offered: t.total.Offered, Dropped: t.total.Dropped, Highest: t.total.Highest,
		When: when(&t.byHour), WorstDay: t.worstT, WorstShare: t.worst,
	}
	for d := range v.ByHour {
		for h := range v.ByHour[d] {
			v.ByHour[d][h] = t.byHour[d][h].share()
		}
	}
	if t.known > 0 && v.Kind == TooLittle {
		v.Ready = t.ready(end)
	}
	return v
}

func (t *tally) kind() Kind {
	switch {
	case t.missing(t.known, t.ofDay):
		return TooLittle
	case t.worst > Hurts:
		return WouldHurt
	}
	return Safe
}

// missing reports whether too little is known.
func (t *tally) missing(known int, ofDay [7]int) bool {
	return known < NeedHours || ofDay[Monday(time.Saturday)] < needOfDay || ofDay[Monday(time.Sunday)] < needOfDay
}

// ready returns when enough will be known if all is from end on.
func (t *tally) ready(end time.Time) time.Time {
	known, ofDay := t.known, t.ofDay
	for t.missing(known, ofDay) {
		known++
		ofDay[Monday(end.Weekday())]++
		end = end.Add(time.Hour)
	}
	return end
}

// Monday returns the place of a day in a week that begins with Monday.
func Monday(d time.Weekday) int { return (int(d) + 6) % 7 }
