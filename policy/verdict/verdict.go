// Package verdict judges a limit that is not enforced, a bucket in shadow or a
// candidate, by what it would have dropped: is it safe to enforce, and if not,
// whom would it hurt and when. It is pure.
package verdict

import "time"

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

// Hour is what one hour counted, in requests.
type Hour struct {
	Known   bool // there is history of the hour, maybe of nothing
	Offered float64
	Dropped float64 // would have been; at most Offered
}

// Verdict is what hours say of a limit. The zero value is too little data.
type Verdict struct {
	Kind Kind
	// From is the start of the first hour that is known, Days how many days are,
	// in whole hours.
	From time.Time
	Days float64
	// Offered and Dropped are all requests of the hours known, and those that
	// would have been dropped.
	Offered, Dropped float64
	// ByHour is the share of requests that would have been dropped, by day of the
	// week, Monday first, and hour of the day, in UTC; NaN: nothing is known.
	ByHour [7][24]float64
	// WorstDay is the day, UTC, of which the largest share would have been
	// dropped, and WorstShare that share, in [0, 1].
	WorstDay   time.Time
	WorstShare float64
}
