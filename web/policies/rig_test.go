package policies_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/controller"
	"grl/roles/rolestest"
	"grl/store"
	"grl/web/pagetest"
)

// People of the tests besides pagetest.Admin.
var (
	viewer = access.Person{Name: "vera", Level: access.Viewer}
	editor = access.Person{Name: "ed", Level: access.Editor, Services: []string{"payments"}}
	owner  = access.Person{Name: "olga", Level: access.Editor, Owners: []string{"team-search"}}
)

// rig is a controller with its dashboard, and clients of its API.
type rig struct {
	t        testing.TB
	pages    http.Handler
	store    *store.Store
	run      func(context.Context) error // the controller, which does not run by itself
	config   grlv1connect.ConfigServiceClient
	policies grlv1connect.PolicyServiceClient
}

func newRig(t testing.TB) *rig {
	t.Helper()
	config := controller.Default()
	config.DB = filepath.Join(t.TempDir(), "db")
	st, err := store.Open(t.Context(), config.DB)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	c, err := controller.New(t.Context(), controller.Options{
		Config: config, Log: slog.New(slog.DiscardHandler), Version: "test", Registry: prometheus.NewRegistry(), Store: st, AnyHost: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, pages: c.Handler(), store: st, run: c.Run}
	var network rolestest.Network
	network.Serve(t, "controller", rolestest.AsAdmin(r.pages))
	client := network.Client(t)
	r.config = grlv1connect.NewConfigServiceClient(client, "http://controller")
	r.policies = grlv1connect.NewPolicyServiceClient(client, "http://controller")
	return r
}

// start lets the controller run until the test ends.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("run the controller: %v", err)
		}
	})
	time.Sleep(10 * time.Second) // in virtual time: until it has looked at all
	synctest.Wait()
}

// limits applies the buckets of a service, each name=rps.
func (r *rig) limits(service string, buckets ...string) {
	r.t.Helper()
	text := "service: " + service + "\nowner: team-" + service + "\nbuckets:\n"
	for _, b := range buckets {
		name, rps, _ := strings.Cut(b, "=")
		text += fmt.Sprintf("  - {name: %s, match: {caller: %s}, limit: {rps: %s}, behavior: deny}\n", name, name, rps)
	}
	_, err := r.config.Apply(r.t.Context(), &grlv1.ApplyRequest{Force: true, Reason: "test", Files: []*grlv1.LimitsFile{{Name: service + ".yaml", Data: []byte(text)}}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// apply makes texts policies, as somebody else does.
func (r *rig) apply(texts ...string) uint64 {
	r.t.Helper()
	request := &grlv1.ApplyPoliciesRequest{Reason: "by others"}
	for _, text := range texts {
		request.Files = append(request.Files, &grlv1.LimitsFile{Name: "policy.yaml", Data: []byte(text)})
	}
	answer, err := r.policies.ApplyPolicies(r.t.Context(), request)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.GetOutcome().GetRevision().GetNumber()
}

// saved returns the text of a policy, "" if there is none.
func (r *rig) saved(name string) string {
	r.t.Helper()
	answer, err := r.policies.GetPolicies(r.t.Context(), &grlv1.GetPoliciesRequest{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range answer.GetPolicies() {
		if p.GetName() == name {
			return string(p.GetData())
		}
	}
	return ""
}

// get asks for a page, which must be there.
func (r *rig) get(who access.Person, target string) string {
	r.t.Helper()
	return get(r.t, r.pages, who, target)
}

func get(t testing.TB, pages http.Handler, who access.Person, target string) string {
	t.Helper()
	response, body := pagetest.Get(t, pages, who, target, false)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s\n%s", target, response.Status, plain(body))
	}
	return body
}

// post hands a form in and returns the status, and the page that follows.
func (r *rig) post(who access.Person, target string, form url.Values) (int, string) {
	r.t.Helper()
	response, body := pagetest.Post(r.t, r.pages, who, target, form)
	if response.StatusCode == http.StatusSeeOther {
		return response.StatusCode, r.get(who, response.Header.Get("Location"))
	}
	return response.StatusCode, body
}

// plain returns the text of a page without its tags, on one line.
func plain(body string) string {
	if _, main, ok := strings.Cut(body, `id="main">`); ok {
		body = main
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(body, "<")
		b.WriteString(before + " ")
		if !ok {
			return strings.Join(strings.Fields(b.String()), " ")
		}
		_, body, _ = strings.Cut(rest, ">")
	}
}

// want fails unless the text of a page has all of these.
func want(t testing.TB, body string, texts ...string) {
	t.Helper()
	text := plain(body)
	for _, w := range texts {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// marked fails unless a field is said to be wrong.
func marked(t testing.TB, body, field string) {
	t.Helper()
	_, input, _ := strings.Cut(body, ` id="`+field+`"`)
	input, _, _ = strings.Cut(input, ">")
	if !strings.Contains(input, `aria-invalid="true"`) || !strings.Contains(body, `id="`+field+`-error"`) {
		t.Errorf("%s is not marked: %q", field, input)
	}
}

// lacks fails if the page has one of these.
func lacks(t testing.TB, body string, texts ...string) {
	t.Helper()
	for _, w := range texts {
		if strings.Contains(body, w) {
			t.Errorf("the page has %q:\n%s", w, plain(body))
		}
	}
}
