package caps

import (
	"context"
	"net/url"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// done says what became of an act, read back: a fact of who holds it now.
type done struct {
	URL   string // of the region; "": nothing was done
	Kind  string // of a notice
	Title string
	Ends  format.Stamp // after the title; zero: none
	Text  string
	Again string // path that undoes it; "": none
}

// done reads back what the query says was done: placed, extended or lifted, by
// the id of the cap, or switched.
func (s site) done(ctx context.Context, query url.Values) (done, error) {
	now := time.Now()
	for _, act := range []string{"placed", "extended"} {
		if id := query.Get(act); id != "" {
			caps, err := s.running(ctx)
			if err != nil {
				return done{}, err
			}
			d := holds(find(caps, id), act, now)
			d.URL = "/caps?" + url.Values{act: {id}}.Encode()
			return d, nil
		}
	}
	if id := query.Get("lifted"); id != "" {
		return s.lifted(ctx, id)
	}
	if query.Has("switched") {
		return switched(s.Backend.Fleet()), nil
	}
	return done{}, nil
}

// holds says of a cap that was placed or extended who has it.
func holds(v *grlv1.CapView, act string, now time.Time) done {
	if v == nil {
		return done{Kind: "warn", Title: "This cap is not there any more", Text: "It was lifted, or has ended."}
	}
	c := v.GetCap()
	d := done{Kind: "good", Ends: format.NewStamp(time.UnixMilli(v.GetEndsAtMs()), now), Text: confirmed(v) + " confirmed." + page.UnheardText(int(v.GetClientsUnheard()))}
	who := whose(c.GetService(), match(c))
	switch {
	case act == "extended":
		d.Title = "Extended the cap on " + who + " until"
	case c.GetBlock():
		d.Title = "Blocked " + who + " until"
	default:
		d.Title = "Capped " + who + " at " + format.RPS(c.GetLimit().GetRps()) + " rps until"
	}
	return d
}

// lifted says of a cap that is gone how to have it back.
func (s site) lifted(ctx context.Context, id string) (done, error) {
	caps, err := s.running(ctx)
	if err != nil {
		return done{}, err
	}
	if find(caps, id) != nil {
		return done{Kind: "warn", Title: "This cap is still there"}, nil
	}
	log, err := s.log(ctx)
	if err != nil {
		return done{}, err
	}
	for _, e := range log {
		if e.Action == "cap.lift" && e.Cap.ID == id {
			c := e.Cap
			return done{
				Kind: "good", Title: "Lifted the cap on " + whose(c.Service, c.match()),
				Text: "Its requests are admitted again, as far as buckets do.", Again: c.path(),
			}, nil
		}
	}
	return done{Kind: "good", Title: "Lifted"}, nil
}

// switched says what the kill switch holds open.
func switched(f page.Fleet) done {
	switch {
	case f.AllDisabled:
		return done{Kind: "warn", Title: "Nothing is dropped anywhere", Text: "Limits, caps and blocks drop nothing until dropping is enabled."}
	case len(f.Disabled) > 0:
		return done{Kind: "warn", Title: "Nothing is dropped for " + listed(f.Disabled), Text: "Limits, caps and blocks of it drop nothing until dropping is enabled."}
	}
	return done{Kind: "good", Title: "Dropping is enabled everywhere"}
}

// listed names the first of some services, and how many there are beside them.
func listed(names []string) string {
	const most = 5
	text := format.Printable(strings.Join(names[:min(len(names), most)], ", "))
	if more := len(names) - most; more > 0 {
		text += " and " + format.Count(more) + " more"
	}
	return text
}
