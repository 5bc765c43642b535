package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// rate formats requests per second: "1,240", "3.5", "0.02".
func rate(rps float64) string {
	switch {
	case rps >= 10 || rps == 0:
		return thousands(strconv.FormatFloat(rps, 'f', 0, 64))
	case rps >= 1:
		return strings.TrimSuffix(strconv.FormatFloat(rps, 'f', 1, 64), ".0")
	default:
		return strconv.FormatFloat(rps, 'g', 2, 64)
	}
}

// limitText formats a limit exactly: "1,200", "0.125".
func limitText(rps float64) string {
	whole, fraction, cut := strings.Cut(strconv.FormatFloat(rps, 'f', -1, 64), ".")
	if !cut {
		return thousands(whole)
	}
	return thousands(whole) + "." + fraction
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// share formats a share of 1: "37%", "0.4%".
func share(s float64) string {
	percent := 100 * s
	if percent != 0 && percent < 10 {
		return strconv.FormatFloat(percent, 'g', 2, 64) + "%"
	}
	return strconv.FormatFloat(percent, 'f', 0, 64) + "%"
}

// span formats a time that passed or is left: "0.4s", "12s", "29m", "3h5m".
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	default:
		d = d.Round(time.Minute)
		if d%time.Hour == 0 {
			return fmt.Sprintf("%dh", d/time.Hour)
		}
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// moment formats a unix time in milliseconds; 0 is "-".
func moment(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z")
}

// size formats bytes: "812 B", "1.2 MB".
func size(bytes uint64) string {
	v, unit := float64(bytes), "B"
	for _, larger := range []string{"kB", "MB", "GB", "TB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, larger
	}
	if unit == "B" || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// dash returns "-" for an empty text.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// parseSpan reads a duration that may be of whole days or weeks, "90d".
func parseSpan(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.Atoi(number); err == nil && n >= 0 && n <= 10_000 {
				return time.Duration(n) * length, nil
			}
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration like 30m, 12h or 90d", text)
	}
	return d, nil
}

// countText formats a whole number, plainly: it may be copied into a flag.
func countText[N uint32 | uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }
