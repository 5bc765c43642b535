package page

import "grl/web/format"

// Notice is a fact above a page with the next step.
type Notice struct {
	Kind  string       // "bad", "warn" or "good"
	Title string       // the fact, without a full stop
	Since format.Stamp // after the title; zero: none
	Text  string       // the next step; empty: none
	Link  Crumb        // to where it is done; zero: none
}

// role is how a notice is announced: what is wrong at once.
func (n Notice) role() string {
	if n.Kind == "bad" {
		return "alert"
	}
	return "status"
}
