package guard

import (
	"math"
	"strconv"
)

// Percent writes a share with three digits at most.
func Percent(share float64) string {
	v := share * 100
	digits := 1
	if v >= 10 || v == math.Trunc(v) {
		digits = 0
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " %"
}

// Rate writes requests per second as people do: 1,240, 0.5.
func Rate(rps float64) string {
	if rps < 100 {
		return strconv.FormatFloat(rps, 'g', 3, 64)
	}
	return count(int(math.Round(rps)))
}

func count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
