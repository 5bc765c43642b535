package policyfile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"grl/limiter/yamlfile"
)

// Schedule says when a policy runs: at wall times of a location. Each is once a
// day, also on the days on which clocks are changed: one that is skipped runs at
// the moment of the change, and one that is there twice runs the first time.
// What runs every hour runs every hour of those days too. It is not changed once
// it is made.
type Schedule struct {
	spec     *cron.SpecSchedule // in UTC, which stands for wall time
	location *time.Location
	hourly   bool // it runs at all hours
	delay    time.Duration
}

// The reader takes five fields, and neither words like @daily nor seconds: so
// nothing runs more than once a minute.
const cronFields = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow

const mostCycleBytes = 256

// ParseSchedule reads five fields of cron: minute, hour, day of the month, month,
// day of the week. A schedule that never comes is an error.
func ParseSchedule(cycle string, location *time.Location) (*Schedule, error) {
	if fields := len(strings.Fields(cycle)); strings.ContainsAny(cycle, "@=") || fields != 5 {
		return nil, errors.New("want five fields: minute, hour, day of the month, month and day of the week")
	}
	if len(cycle) > mostCycleBytes {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(cycle), mostCycleBytes)
	}
	parsed, err := cron.NewParser(cronFields).Parse("TZ=UTC " + cycle)
	if err != nil {
		return nil, errors.New(yamlfile.Clip(err.Error()))
	}
	s := &Schedule{spec: parsed.(*cron.SpecSchedule), location: location} // of five fields it is one
	const allHours = 1<<24 - 1
	s.hourly = s.spec.Hour&allHours == allHours
	// Days and months are the same in all years but for 29 February.
	if s.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("there is no such day")
	}
	return s, nil
}

// mostDelay bounds the delay of a schedule.
const mostDelay = time.Minute

// Jittered returns the same schedule, each time later by a delay that the seed
// gives: at most a minute, and a twentieth of the time between two runs. So
// policies of one schedule, or the same ones at several controllers, do not all
// run at once, and still at the same time each day.
func (s *Schedule) Jittered(seed string) *Schedule {
	most := min(mostDelay, s.shortest()/20)
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // never fails
	jittered := *s
	jittered.delay = time.Duration(h.Sum64() % uint64(most)).Truncate(time.Millisecond)
	return &jittered
}

// shortest returns the shortest time between two runs, as far as a leap year has
// it.
func (s *Schedule) shortest() time.Duration {
	const runs = 2000 // more than a day of minutes
	least := mostDelay * 20
	at := s.spec.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC))
	for range runs {
		next := s.spec.Next(at)
		if next.IsZero() {
			break
		}
		least = min(least, next.Sub(at))
		at = next
	}
	return least
}

// Next returns the first time after a time at which the policy runs; zero if it
// is more than four years away.
func (s *Schedule) Next(after time.Time) time.Time {
	after = after.Add(-s.delay)
	if s.hourly {
		// Hours of the clock, as they are: one that is there twice runs twice.
		local := *s.spec
		local.Location = s.location
		return s.delayed(local.Next(after.In(s.location)))
	}
	// A wall time before the one of after may still be ahead where it is shown
	// twice, so begin a day before.
	wall := wallTime(after.In(s.location)).Add(-day)
	for {
		if wall = s.spec.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if t := instant(wall, s.location); t.After(after) {
			return s.delayed(t)
		}
	}
}

func (s *Schedule) delayed(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(s.delay)
}

// wallTime returns what clocks show at t, as a time of UTC.
func wallTime(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
