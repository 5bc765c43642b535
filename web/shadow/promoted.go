package shadow

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// promotedPath returns the address that shows what was promoted.
func promotedPath(revisions []uint64) string {
	v := make(url.Values)
	for _, n := range revisions {
		v.Add("revision", strconv.FormatUint(n, 10))
	}
	return "/shadow/promoted?" + v.Encode()
}

// promotedView is what was promoted, as it was read back.
type promotedView struct {
	Notice page.Notice
	Done   []doneView
}

// doneView is one limit that was promoted.
type doneView struct {
	Label    page.Label
	Revision string
	Actor    string
	Reason   string
	At       format.Stamp
	Forced   bool
	Lines    []diff.Line
}

// auditRows is how many promotions are looked at, the newest first.
const auditRows = 500

// promoted shows what revisions promoted.
func (s site) promoted(w http.ResponseWriter, r *http.Request) {
	wanted := make(map[uint64]bool)
	for _, text := range r.URL.Query()["revision"] {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 && len(wanted) < mostChosen {
			wanted[n] = true
		}
	}
	answer, err := s.Services.Audit.ListAudit(r.Context(), &grlv1.ListAuditRequest{Action: "promote", PageSize: auditRows})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	fleet, err := s.Services.View.GetFleet(r.Context(), &grlv1.GetFleetRequest{})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	var v promotedView
	newest := uint64(0)
	for _, e := range answer.GetEntries() {
		if !wanted[e.GetRevision()] || len(e.GetSubjects()) == 0 {
			continue
		}
		newest = max(newest, e.GetRevision())
		v.Done = append(v.Done, doneView{
			Label: page.NewLabel(e.GetSubjects()[0], "", "", ""), Revision: fmt.Sprintf("r%d", e.GetRevision()),
			Actor: format.Printable(e.GetActor()), Reason: format.Printable(e.GetReason()), Forced: e.GetForced(),
			At: format.NewStamp(time.UnixMilli(e.GetAtMs()), time.Now()), Lines: diff.Lines(bare(e.GetBefore()), bare(e.GetAfter())),
		})
	}
	status := http.StatusOK
	if len(v.Done) == 0 {
		status, v.Notice = http.StatusNotFound, page.Notice{Kind: "warn", Title: "No such promotion", Link: page.Crumb{Name: "Changes", Path: "/changes"}}
	} else {
		v.Notice = promotedNotice(v.Done, newest, fleet, s.Backend.Fleet().Unheard)
	}
	p := s.Page(r, "Promoted", "/shadow")
	p.Crumbs = []page.Crumb{{Name: "Shadow", Path: "/shadow"}, {Name: "Promoted"}}
	s.Render(w, r, status, promotedPage(p, v))
}

// bare returns what the audit has of a bucket, without the line that names it.
func bare(text string) string {
	if rest, ok := strings.CutPrefix(text, "# "); ok {
		_, rest, _ = strings.Cut(rest, "\n")
		return rest
	}
	return text
}

// promotedNotice says whether it holds everywhere.
func promotedNotice(done []doneView, newest uint64, fleet *grlv1.GetFleetResponse, unheard int) page.Notice {
	n := page.Notice{Kind: "good", Title: fmt.Sprintf("Promoted %s: saved as %s and active", format.Plural(len(done), "limit"), done[0].Revision)}
	if len(done) > 1 {
		n.Title = fmt.Sprintf("Promoted %s: saved as %s to %s and active", format.Plural(len(done), "limit"), done[len(done)-1].Revision, done[0].Revision)
	}
	if fleet.GetRevision() < newest {
		n.Kind, n.Title = "warn", strings.Replace(n.Title, "and active", "and not active here yet", 1)
	}
	hosts, hold := 0, 0
	for _, node := range fleet.GetNodes() {
		if node.GetRole() == grlv1.Role_ROLE_CLIENT {
			hosts++
			if node.GetConfigRevision() >= newest {
				hold++
			}
		}
	}
	n.Text = "No host is connected." + page.UnheardText(unheard)
	if hosts > 0 {
		n.Text = page.ConfirmedText(hold, hosts, unheard)
	}
	if ro := fleet.GetRollout(); ro.GetState() == grlv1.Rollout_STATE_RUNNING {
		n.Text += fmt.Sprintf(" r%d goes out zone by zone: %d reached, %d wait.", ro.GetRevision(), len(ro.GetReached()), len(ro.GetWaiting()))
	}
	n.Link = page.Crumb{Name: "Changes, and roll back", Path: "/changes"}
	return n
}
