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
