package runs

import (
	"net/http"

	grlv1 "grl/proto/grl/v1"
	"grl/web/page"
)

// request asks for a run, and leads to where it will appear.
func (s site) request(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v := listView{Policy: r.PostForm.Get("policy"), Service: r.PostForm.Get("service"), DryRun: r.PostForm.Get("dry_run") != ""}
	asked, err := s.Services.RLC.RequestRun(r.Context(), &grlv1.RequestRunRequest{Policy: v.Policy, Service: v.Service, DryRun: v.DryRun})
	if err != nil {
		v.Refusal = s.refusal(r, err, "No run was asked for")
		s.renderList(w, r, v.Refusal.Status, v)
		return
	}
	http.Redirect(w, r, listPath(0, asked.GetRequestId()), http.StatusSeeOther)
}
