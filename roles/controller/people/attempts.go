package people

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Attempts to come in, a minute.
const (
	// AttemptsPerAccount is for one account from one address.
	AttemptsPerAccount = 5
	// AttemptsPerAddress is for one address, an IPv6 one by its /64.
	AttemptsPerAddress = 60
	// AttemptsInAll is for everyone, so that hashing takes no more than a part of
	// a core.
	AttemptsInAll = 600

	attemptWindow = time.Minute
)

// attempts counts them in a sliding window. Since refused ones are not counted,
// it never holds more than two keys for each of AttemptsInAll and one more, and
// those that have gone stale since the last sweep.
type attempts struct {
	mu    sync.Mutex
	made  map[string][]time.Time // key → times of the last minute, the oldest first
	swept time.Time
}

// bound is how many attempts a key has.
type bound struct {
	key  string
	most int
}

func newAttempts() *attempts { return &attempts{made: make(map[string][]time.Time)} }

// take counts an attempt for all bounds, or none where one of them is reached.
func (a *attempts) take(now time.Time, bounds ...bound) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep(now)
	for _, b := range bounds {
		if len(a.recent(b.key, now)) >= b.most {
			return false
		}
	}
	for _, b := range bounds {
		a.made[b.key] = append(a.recent(b.key, now), now)
	}
	return true
}

// forgive takes the last attempt of a key back: it was none against it.
func (a *attempts) forgive(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if made := a.made[key]; len(made) > 0 {
		a.made[key] = made[:len(made)-1]
	}
}

// recent drops what is older than the window. The caller holds mu.
func (a *attempts) recent(key string, now time.Time) []time.Time {
	made := a.made[key]
	for len(made) > 0 && now.Sub(made[0]) >= attemptWindow {
		made = made[1:]
	}
	return made
}

// sweep forgets keys without recent attempts, once a window. The caller holds
// mu.
func (a *attempts) sweep(now time.Time) {
	if now.Sub(a.swept) < attemptWindow {
		return
	}
	a.swept = now
	for key := range a.made {
		if len(a.recent(key, now)) == 0 {
			delete(a.made, key)
		}
	}
}

// addressBounds are those that hold whatever the account.
func addressBounds(from string) []bound {
	return []bound{{"from " + from, AttemptsPerAddress}, {"all", AttemptsInAll}}
}

// accountKey counts the attempts on one account from one address.
func accountKey(account, from string) string { return "account " + account + " from " + from }

// hostOf returns the address of a peer without its port, an IPv6 one as its /64,
// which is what one customer of a provider has.
func hostOf(from string) string {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() || addr.IsLoopback() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return prefix.String()
}
