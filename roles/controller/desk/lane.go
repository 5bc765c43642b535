package desk

import (
	"context"
	"encoding/json"
	"fmt"

	"grl/store/ledger"
)

// baseSuffix ends the name of the source under which a lane is kept.
const baseSuffix = " base"

// peopleSource is the source of what people apply.
const peopleSource = "apply"

// maxLaneBytes bounds a lane as it is stored; what is left is for the hash of
// the files.
const maxLaneBytes = ledger.MaxSourceText - 1<<10

// lane says what limits files that come the same way were last applied at: the
// base of the next ones.
type lane struct {
	// All is the revision at which files of all services were applied; 0: never.
	All uint64 `json:"all,omitempty"`
	// Services has later revisions, at which those of single services were.
	Services map[string]uint64 `json:"services,omitempty"`
	// Owed has, by service, what the files said where a later edit was kept
	// instead. Without it files that did not change would seem to ask for what
	// was there before that edit, the machine's too.
	Owed map[string]owed `json:"kept,omitempty"`
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
	next := lane{All: l.All, Services: map[string]uint64{}, Owed: map[string]owed{}}
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
	for service, items := range l.Owed {
		if !all && !named[service] {
			next.Owed[service] = items
		}
	}
	// The services of what was kept are among those applied, so nothing that l
	// has is written to.
	for key, text := range kept {
		service := serviceOf(key)
		if next.Owed[service] == nil {
			next.Owed[service] = owed{}
		}
		next.Owed[service][markOf(key)] = markOf(text)
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
		return "", invalid("files", "%d services were applied in parts, and %d later edits are not in the files, which is more than is remembered (%d bytes, at most %d): export the configuration, and apply all of it with prune",
			len(l.Services), l.edits(), len(text), maxLaneBytes)
	}
	return string(text), nil
}

func (l *lane) edits() int {
	n := 0
	for _, items := range l.Owed {
		n += len(items)
	}
	return n
}
