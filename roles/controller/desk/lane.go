package desk

import (
	"context"
	"encoding/json"
	"fmt"
)

// baseSuffix ends the name of the source under which a lane is kept.
const baseSuffix = " base"

// peopleSource is the source of what people apply.
const peopleSource = "apply"

// maxLaneBytes bounds a lane as it is stored.
const maxLaneBytes = 512 << 10

// lane says what limits files that come the same way were last applied at: the
// base of the next ones.
type lane struct {
	// All is the revision at which files of all services were applied; 0: never.
	All uint64 `json:"all,omitempty"`
	// Services has later revisions, at which those of single services were.
	Services map[string]uint64 `json:"services,omitempty"`
	// Owed has, by item, the hash of what the files said where a later edit was
	// kept instead; see hashItem.
	Owed map[string]string `json:"owed,omitempty"`
}

// lane reads what a source was last applied at.
func (d *Desk) lane(ctx context.Context, source string) (lane, error) {
	var l lane
	text, _, err := d.opts.Ledger.LastSource(ctx, source+baseSuffix)
	if err != nil || text == "" {
		return l, err
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("read what %q was last applied at: %w", source, err)
	}
	return l, nil
}

// base returns the revision at which files of a service were last applied, 0 if
// they never were.
func (l *lane) base(service string) uint64 { return max(l.All, l.Services[service]) }

// applied returns l after files of some services were applied at a revision;
// all: there are no other services. kept has what the files say of items where
// that was not taken.
func (l *lane) applied(revision uint64, services []string, all bool, kept map[string]string) lane {
	next := lane{All: l.All, Services: map[string]uint64{}, Owed: map[string]string{}}
	named := make(map[string]bool, len(services))
	for _, s := range services {
		named[s] = true
	}
	if all {
		next.All = revision
	} else {
		for service, at := range l.Services {
			next.Services[service] = at
		}
		for _, service := range services {
			next.Services[service] = revision
		}
	}
	for key, hash := range l.Owed {
		if !all && !named[serviceOf(key)] {
			next.Owed[key] = hash
		}
	}
	for key, text := range kept {
		next.Owed[key] = hashItem(text)
	}
	return next
}

// text returns l as it is stored.
func (l *lane) text() (string, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	if len(text) > maxLaneBytes {
		return "", invalid("files", "too many services were applied in parts, or too many later edits are not in the files: export the configuration, and apply all of it with prune")
	}
	return string(text), nil
}
