package alert

import (
	"slices"
	"time"
)

const (
	// settling is how long the hosts of a zone that is seen for the first time
	// may take to come: they are no newcomers.
	settling = 30 * time.Second
	// replaced is how long before or after a host left another one may come in
	// its place, as when a new version is rolled out. After it who left is
	// missed no more: the zone is smaller now.
	replaced = 10 * time.Minute
	// maxZones bounds the zones that are followed.
	maxZones = MaxSubjects
)

// zone is how many hosts a zone has, and had. Hosts have no names here: one that
// comes takes the place of one that left.
type zone struct {
	began time.Time // first seen
	hosts int
	// left and came are those that left, and came, without another one in their
	// place yet, the oldest first.
	left, came []group
}

// group is hosts that left or came at once.
type group struct {
	at    time.Time
	hosts int
}

// countHosts follows the hosts of the zones.
func countHosts(now time.Time, zones []Zone, before map[string]zone) map[string]zone {
	next := make(map[string]zone, len(before))
	here := make(map[string]bool, len(zones))
	room := maxZones - len(before)
	for _, in := range zones {
		old, known := before[in.Name]
		if here[in.Name] = true; !known {
			if room--; room < 0 {
				continue
			}
		}
		next[in.Name] = old.step(now, in.Hosts, in.Silent > 0)
	}
	for name, old := range before { // nobody tells of it any more
		if !here[name] {
			if z := old.step(now, 0, false); len(z.left) > 0 {
				next[name] = z
			}
		}
	}
	return next
}

// step returns the zone with so many hosts.
func (z zone) step(now time.Time, hosts int, silent bool) zone {
	if z.began.IsZero() {
		z.began = now
	}
	moved := hosts - z.hosts
	z.hosts = hosts
	z.came = young(now, z.came)
	if !silent { // in a zone that is silent they are missed for as long as it is
		z.left = young(now, z.left)
	}
	switch {
	case moved > 0:
		if z.left, moved = take(z.left, moved); moved > 0 && now.Sub(z.began) > settling {
			z.came = append(slices.Clone(z.came), group{now, moved})
		}
	case moved < 0:
		if z.came, moved = take(z.came, -moved); moved > 0 {
			z.left = append(slices.Clone(z.left), group{now, moved})
		}
	}
	return z
}

// lost counts the hosts that are silent for long enough.
func (z zone) lost(now time.Time) int {
	lost := 0
	for _, g := range z.left {
		if now.Sub(g.at) >= lostAfter {
			lost += g.hosts
		}
	}
	return lost
}

// young returns the groups that are not older than replaced.
func young(now time.Time, groups []group) []group {
	first := slices.IndexFunc(groups, func(g group) bool { return now.Sub(g.at) <= replaced })
	if first < 0 {
		return nil
	}
	return groups[first:]
}

// take removes hosts from groups, the oldest first, and returns how many there
// were not.
func take(groups []group, hosts int) (left []group, more int) {
	left = slices.Clone(groups)
	for len(left) > 0 && hosts > 0 {
		n := min(hosts, left[0].hosts)
		left[0].hosts -= n
		hosts -= n
		if left[0].hosts == 0 {
			left = left[1:]
		}
	}
	return left, hosts
}
