package policy

import (
	"math"
	"strconv"
)

// Rate writes requests per second as people do: 1,240, 0.5.
func Rate(rps float64) string {
	if rps < 100 {
		return strconv.FormatFloat(rps, 'g', 3, 64)
	}
	return group(strconv.FormatFloat(math.Round(rps), 'f', 0, 64))
}

// Count writes how many there are as people do: 1,234,567. n is at least 0.
func Count(n int) string { return group(strconv.Itoa(n)) }

// group sets a comma before each three digits.
func group(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
