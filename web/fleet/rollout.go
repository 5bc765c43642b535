package fleet

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

const shownZones = 12 // of a rollout, by name

// rolloutView is a configuration on its way from zone to zone.
type rolloutView struct {
	Title            string
	Stopped          bool
	Reason           string // why it was stopped
	Reached, Waiting string
	Step             format.Stamp
}

// rollout returns the one under way; nil: there is none.
func (v *view) rollout() *rolloutView {
	r := v.fleet.Rollout
	if r == nil {
		return nil
	}
	all := len(r.Reached) + len(r.Waiting)
	out := &rolloutView{
		Title:   fmt.Sprintf("r%d is in %d of %s; the others hold r%d", r.Revision, len(r.Reached), format.Plural(all, "zone"), r.From),
		Stopped: r.Stopped, Reason: format.Printable(shorten(r.Reason, maxReason)),
		Reached: named(r.Reached), Waiting: named(r.Waiting),
		Step: format.NewStamp(r.StepAt, v.now),
	}
	if r.Stopped {
		out.Title = fmt.Sprintf("The rollout of r%d stopped by itself", r.Revision)
	}
	return out
}

// named lists zones, and how many more there are.
func named(zones []string) string {
	var names []string
	for _, z := range zones[:min(len(zones), shownZones)] {
		names = append(names, printName(z))
	}
	if more := len(zones) - len(names); more > 0 {
		names = append(names, format.Count(more)+" more")
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// finishView is the form that takes a rollout to all zones.
type finishView struct {
	Reason  page.Field
	Refusal *page.Refusal // nil: none
}

func newFinish(reason string) finishView {
	return finishView{Reason: page.Field{Name: "reason", Label: "Reason", Value: reason, Max: 500, Required: true, Hint: "Shown in Changes."}}
}

// finish takes the rollout to all zones at once.
func (s *site) finish(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	reason := r.PostForm.Get("reason")
	answer, err := s.Services.Config.FinishRollout(r.Context(), &grlv1.FinishRolloutRequest{Reason: reason})
	if err != nil {
		refusal := s.Refusal(r, err)
		form := newFinish(reason)
		form.Refusal, form.Reason.Error = &refusal, refusal.At("reason")
		s.render(w, r, refusal.Status, form)
		return
	}
	v := url.Values{"finished": {strconv.FormatUint(answer.GetRollout().GetRevision(), 10)}}
	http.Redirect(w, r, "/fleet?"+v.Encode(), http.StatusSeeOther)
}

// finished proves that a rollout is over, by what the controller says now.
func finished(v *view, revision uint64) page.Notice {
	if r := v.fleet.Rollout; r != nil || v.fleet.Revision < revision {
		return page.Notice{Kind: "warn", Title: fmt.Sprintf("r%d is not in all zones yet", revision)}
	}
	behind := 0
	for i := range v.fleet.Nodes {
		if v.fleet.Nodes[i].Revision < revision {
			behind++
		}
	}
	n := page.Notice{Kind: "good", Title: fmt.Sprintf("r%d goes to all zones", revision), Text: "Every node holds it."}
	if behind > 0 {
		n.Text = format.Count(behind) + " of " + format.Plural(len(v.fleet.Nodes), "node") + " have not confirmed it yet."
	}
	return n
}

// configuratorView is who computes limits.
type configuratorView struct {
	Absent, Never           bool
	Name, Version, Source   string
	Repository, Commit      string
	Problem                 string
	Run                     string // the one under way; "": none
	Seen, Next              format.Stamp
	Synced                  format.Stamp
	AnyNext, AnySync, Known bool
}

// configurator asks who computes limits; nil: this controller does not know, or
// who looks may not.
func (s *site) configurator(r *http.Request, now time.Time) *configuratorView {
	if s.Services.RLC == nil || !page.May(r.Context(), grlv1connect.RLCServiceGetConfiguratorProcedure) {
		return nil
	}
	m, err := s.Services.RLC.GetConfigurator(r.Context(), &grlv1.GetConfiguratorRequest{})
	if err != nil {
		return &configuratorView{Problem: s.Refusal(r, err).Title} // which logs it, if it is ours
	}
	st := m.GetStatus()
	v := &configuratorView{
		Known: true, Absent: m.GetAbsent(), Never: m.GetSeenAtMs() == 0, Name: printName(m.GetHolder()), Version: printName(st.GetVersion()),
		Source: printName(st.GetSource()), Repository: printName(st.GetRepository()), Commit: printName(shorten(st.GetCommit(), 12)),
		Problem: format.Printable(shorten(st.GetRepositoryProblem(), maxReason)), Seen: format.NewStamp(time.UnixMilli(m.GetSeenAtMs()), now),
	}
	if st.GetRun() > 0 {
		v.Run = fmt.Sprintf("run %d: %s of %s", st.GetRun(), format.Count(int(st.GetDone())), format.Plural(int(st.GetBuckets()), "bucket"))
	}
	if ms := st.GetNextAtMs(); ms > 0 {
		v.AnyNext, v.Next = true, format.NewStamp(time.UnixMilli(ms), now)
	}
	if ms := st.GetSyncedAtMs(); ms > 0 {
		v.AnySync, v.Synced = true, format.NewStamp(time.UnixMilli(ms), now)
	}
	return v
}
