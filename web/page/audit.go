package page

import "time"

// AuditCheck is what was found when the controller last went through the chain of
// the audit.
type AuditCheck struct {
	At      time.Time // zero: not yet
	Entries uint64
	Hash    []byte // of the newest entry
	Broken  uint64 // first entry that does not hold; 0: all do
	Reason  string // why it does not
}
