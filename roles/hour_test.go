package roles_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
)

// byHour returns a limit by the hour of the day: at for the hours named, else
// 1,000.
func byHour(at map[int]int) string {
	var hours []string
	for hour := range 24 {
		rps := 1000
		if n, ok := at[hour]; ok {
			rps = n
		}
		hours = append(hours, fmt.Sprint(rps))
	}
	// Virtual time begins at midnight UTC, which is 5:45 there.
	return fmt.Sprintf("limit: {rps: 1000, hourly: [%s], time_zone: Asia/Kathmandu}; behavior: deny", strings.Join(hours, ", "))
}

// limitOfAll returns the limit that the API shows, and the serial of what holds.
func (f *fleet) limitOfAll() (rps float64, serial uint64) {
	f.t.Helper()
	for _, b := range f.Buckets() {
		if b.GetBucket() == "shop/all" {
			rps = b.GetLimitRps()
		}
	}
	return rps, f.Fleet().GetSerial()
}

// The limit of an hour holds as it begins, everywhere, without a revision. What
// changes by no limit is not said.
func TestLimitsOfTheHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(byHour(map[int]int{5: 200, 6: 100})), []string{"z1", "z2"}, 100, 100, 100, 100)
		f.offer(settling)
		f.steady("in the first hour", 3, 200, 0.03)
		_, before := f.limitOfAll()
		f.offer(15*time.Minute - 9*time.Second)
		f.steady("before the next", 1, 200, 0.05)
		f.offer(2 * time.Second) // in which it begins
		f.steady("in the next hour", 5, 100, 0.06)
		rps, serial := f.limitOfAll()
		if rps != 100 || serial != before+1 {
			t.Errorf("limit %v under serial %d, want 100 under %d", rps, serial, before+1)
		}
		if got := f.Fleet().GetRevision(); got != 1 {
			t.Errorf("r%d, want r1", got)
		}
		f.offer(16 * time.Minute)
		if _, again := f.limitOfAll(); again != serial {
			t.Errorf("serial %d within the hour, want %d", again, serial)
		}
	})
}

// Hosts go on by the limits of the last hour while no controller is there; one
// that starts goes over to those of its hour at once.
func TestLimitsOfTheHourAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(byHour(map[int]int{5: 200, 6: 100})), []string{"z1", "z2"}, 100, 100, 100, 100)
		f.offer(14*time.Minute + 50*time.Second)
		f.Stop("controller")
		f.offer(15 * time.Second)
		f.steady("after the hour, without a controller", 3, 200, 0.05)
		f.Controller()
		f.offer(settling)
		if rps, _ := f.limitOfAll(); rps != 100 {
			t.Errorf("limit %v after the start, want 100", rps)
		}
		f.steady("with a controller", 3, 100, 0.06)
	})
}

// A revision that brings limits by the hour long after the last ones begins with
// those of its own hour.
func TestLimitsOfTheHourComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(byHour(map[int]int{5: 200, 6: 100})), []string{"z1"}, 400)
		f.offer(settling)
		change := func(bucket string) {
			t.Helper()
			if _, err := f.apply(&grlv1.ApplyRequest{Force: true, Reason: "hours"}, limits(bucket)); err != nil {
				t.Fatal(err)
			}
			f.offer(settling)
		}
		change("limit: {rps: 300}; behavior: deny")
		f.steady("without hours", 3, 300, 0.03)
		_, before := f.limitOfAll()
		time.Sleep(20 * time.Minute) // 6:05
		if _, serial := f.limitOfAll(); serial != before {
			t.Errorf("serial %d without hours, want %d", serial, before)
		}
		change(byHour(map[int]int{5: 200, 6: 100}))
		f.steady("with hours again", 3, 100, 0.06)
	})
}
