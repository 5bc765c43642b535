package bucket

import (
	"context"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// savedView says what became of a change that was made here.
type savedView struct {
	Kind, Title, Text string // Title "": there is nothing to say
	URL               string
	Bucket            string
	Undo              string // the revision to roll back; "": it cannot be, or not by this person
	Changes           string // the page of the revision
}

func (s site) saved(ctx context.Context, q query) (templ.Component, error) {
	v, err := s.savedView(ctx, q)
	return savedText(v), err
}

// savedView reads back what a revision made of the bucket. It says nothing of one
// that did not change it.
func (s site) savedView(ctx context.Context, q query) (savedView, error) {
	present, err := s.configuration(ctx, q.Service, 0)
	if err != nil || present == nil || q.Saved > present.revision || q.Saved < 1 {
		return savedView{}, err
	}
	made, err := s.configuration(ctx, q.Service, q.Saved)
	if err != nil {
		return savedView{}, err
	}
	before := ""
	if q.Saved > 1 {
		was, err := s.configuration(ctx, q.Service, q.Saved-1)
		if err != nil {
			return savedView{}, err
		}
		before = textOf(was, q.Name)
	}
	text := textOf(made, q.Name)
	if text == before {
		return savedView{}, nil
	}
	v := savedView{URL: q.path("/saved"), Kind: "good", Bucket: q.bucket(), Changes: revisionPath(q.Saved)}
	if textOf(present, q.Name) != text {
		v.Kind, v.Title = "warn", fmt.Sprintf("Saved as r%d, and changed again since", q.Saved)
		v.Text = fmt.Sprintf("What holds now is r%d.", present.revision)
		return v, nil
	}
	fleet, err := s.Services.View.GetFleet(ctx, &grlv1.GetFleetRequest{})
	if err != nil {
		return savedView{}, err
	}
	v.say(q.Saved, fleet, s.Backend.Fleet().Unheard)
	if q.Saved > 1 && page.MayEdit(ctx, q.Service, present.service.Owner) && page.May(ctx, grlv1connect.ConfigServiceRollbackProcedure) {
		v.Undo = fmt.Sprint(q.Saved)
	}
	return v, nil
}

// say says how far a revision has come, of hosts that report; unheard ones are
// beside them.
func (v *savedView) say(revision uint64, fleet *grlv1.GetFleetResponse, unheard int) {
	v.Title = fmt.Sprintf("Saved as r%d and active", revision)
	if fleet.GetRevision() < revision {
		v.Kind, v.Title = "warn", fmt.Sprintf("Saved as r%d, and not active here yet", revision)
	}
	hosts, hold, refused := 0, 0, 0
	for _, n := range fleet.GetNodes() {
		if n.GetRole() != grlv1.Role_ROLE_CLIENT {
			continue
		}
		hosts++
		switch {
		case n.GetConfigRevision() >= revision:
			hold++
		case n.GetRefusedRevision() >= revision:
			refused++
		}
	}
	v.Text = page.ConfirmedText(hold, hosts, unheard)
	if hosts == 0 {
		v.Text = "No host reports yet." + page.UnheardText(unheard)
	}
	if refused > 0 {
		v.Kind = "warn"
		v.Text += " " + format.Plural(refused, "host") + " refused it: Fleet says why."
	}
	switch r := fleet.GetRollout(); {
	case r == nil || r.GetRevision() != revision:
	case r.GetState() == grlv1.Rollout_STATE_STOPPED:
		v.Kind = "warn"
		v.Text += " The rollout was stopped: " + format.Printable(r.GetReason()) + "."
	case r.GetState() == grlv1.Rollout_STATE_RUNNING:
		v.Text += " It goes out zone by zone: reached " + format.Printable(strings.Join(r.GetReached(), ", ")) + "."
		if w := r.GetWaiting(); len(w) > 0 {
			v.Text += " Next: " + format.Printable(w[0]) + "."
		}
	}
}
