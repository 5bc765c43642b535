package policy

// Word is a word of a fixed list, with what it means.
type Word struct{ Name, Text string }

// refusals is why a limit is not changed, or not lowered.
var refusals = []Word{
	{"no_data", "there is no history"},
	{"coverage", "less than 80 % of the history is there"},
	{"partial", "a part of the history is missing: a region, a zone, or what its source left out"},
	{"nan", "the history has values that are not numbers, or infinite ones"},
	{"negative", "the history has negative values"},
	{"duplicated", "the history has the same time twice"},
	{"out_of_order", "the history is not in the order of time"},
	{"zero", "the history says that nothing was offered where something was"},
	{"short_history", "there is less history than the policy needs"},
	{"mismatch", "two sources differ by more than 20 %"},
	{"damaged", "a part of the history cannot be read"},
	{"source_error", "the source of history did not answer"},
	{"own_drops", "grl itself dropped some of it in the last 7 days"},
	{"incident", "a time that does not teach leaves too little of the last 7 days"},
	{"no_quota", "no agreed limit is valid now"},
}

// Refusals returns the words of Result.Refused and BoundInput.NoLower. It is not
// changed.
func Refusals() []Word { return refusals }

// figures is what a Number may be.
var figures = []Word{
	{"peak", "the robust peak: the smallest limit that would have dropped at most 0.01 % of the history"},
	{"highest", "the highest step of the history"},
	{"history", "days of which the load is known"},
	{"growth", "what the growth of the last week multiplies the peak by"},
	{"buffer", "what the peak is multiplied by beyond growth, learnt from past cycles"},
	{"best_buffer", "the smallest buffer that would have been enough in the cycles learnt from"},
	{"cycles", "past cycles that the buffer is learnt from"},
	{"sparse_floor", "two standard deviations above the peak, counted as a rare event"},
	{"load", "the highest step of the last hours, or of the same hours yesterday"},
	{"forecast", "what is expected of the hour at most"},
	{"multiple", "what the forecast is multiplied by, before a margin of 10 %: as calibrated last night"},
	{"peak_share", "the share of the peak that no hour lies below, before a margin of 10 %: as calibrated last night"},
	{"cap", "the most that any hour may have: 1.15 times the peak, or the floor of sparse buckets"},
	{"gain", "how far below 1.15 times the peak the limits by the hour stood in the calibration, as a mean logarithm: 0.5 is 40 % lower"},
	{"event", "what the events of the calendar multiply the limit by"},
	{"second_over_minute", "the highest second of a minute over the minute's mean"},
	{"computed", "the limit before floor, ceiling, rounding and rails"},
	{"quota", "the agreed limit"},
}

// Figures returns the names of Number. It is not changed.
func Figures() []Word { return figures }

// textOf returns what a word of a list means; the word itself if it is not there.
func textOf(words []Word, name string) string {
	for _, w := range words {
		if w.Name == name {
			return w.Text
		}
	}
	return name
}
