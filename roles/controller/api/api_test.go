package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/policy/guard"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/controller/api"
	"grl/roles/controller/desk"
	"grl/roles/controller/desk/desktest"
	"grl/store"
	"grl/store/ledger"
)

// quiet is a fleet in which only checkout calls.
type quiet struct{}

func (quiet) Offered(_ string, m limiter.Match) (float64, bool) { return 1240, m.Caller == "checkout" }

func (quiet) History(context.Context, string, time.Time, time.Time) ([]guard.Cell, error) {
	return nil, nil
}

func (quiet) Cap(string, string) desk.CapLoad {
	return desk.CapLoad{OfferedRPS: 9, DroppedRPS: 3, Holding: 2, Clients: 3}
}

func (quiet) Zones() []string                              { return []string{"a"} }
func (quiet) Regions() [][]string                          { return [][]string{{"a"}} }
func (quiet) Active(context.Context, uint64, uint64) error { return nil }

type server struct {
	t      testing.TB
	url    string
	ledger *ledger.Ledger
	store  *store.Store
	who    *access.Person // of every call
	node   *access.Node   // that calls; nil: none
}

func serve(t testing.TB) *server {
	engine, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return serveWith(t, engine, "")
}

// serveWith serves from a store, at a controller with a limits directory or none.
func serveWith(t testing.TB, engine *store.Store, limits string) *server {
	s := &server{t: t, ledger: ledger.New(engine), store: engine, who: &access.Person{Name: "ada", Level: access.Admin}}
	log := slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	d := desk.New(desk.Options{Ledger: s.ledger, Traffic: quiet{}, Log: log})
	for _, r := range api.New(api.Options{Desk: d, Ledger: s.ledger, History: engine, Limits: limits, Log: log}).Routes() {
		mux.Handle(r.Path, r.Handler)
	}
	http := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := access.Identity{Person: s.who, Node: s.node, From: "10.0.0.9", RequestID: "q7"}
		mux.ServeHTTP(w, r.WithContext(access.With(r.Context(), id)))
	}))
	t.Cleanup(http.Close)
	s.url = http.URL
	return s
}

// post sends a body to a procedure, and returns the answer.
func (s *server) post(procedure, contentType string, body []byte) (status int, answer []byte) {
	s.t.Helper()
	r, err := http.Post(s.url+"/grl.v1."+procedure, contentType, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err = io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, answer
}

// call sends JSON, and returns the code of the answer; "" is fine.
func (s *server) call(procedure, body string) (code, message string) {
	s.t.Helper()
	status, answer := s.post(procedure, "application/json", []byte(body))
	if status == http.StatusOK {
		return "", string(answer)
	}
	var e struct{ Code, Message string }
	if err := json.Unmarshal(answer, &e); err != nil || e.Code == "" {
		s.t.Fatalf("%s answers %d: %q", procedure, status, answer)
	}
	return e.Code, e.Message
}

func limits(service string, rps float64) *grlv1.LimitsFile {
	text := fmt.Sprintf("service: %s\nbuckets:\n  - {name: web, match: {caller: web}, limit: {rps: %v}, behavior: deny}\n", service, rps)
	return &grlv1.LimitsFile{Name: service + ".yaml", Data: []byte(text)}
}

func (s *server) config() grlv1connect.ConfigServiceClient {
	return grlv1connect.NewConfigServiceClient(http.DefaultClient, s.url)
}

func (s *server) incident() grlv1connect.IncidentServiceClient {
	return grlv1connect.NewIncidentServiceClient(http.DefaultClient, s.url)
}

func TestConfiguration(t *testing.T) {
	s := serve(t)
	ctx, config := t.Context(), s.config()
	applied, err := config.Apply(ctx, &grlv1.ApplyRequest{Files: []*grlv1.LimitsFile{limits("payments", 100), limits("search", 5)}, Reason: "first"})
	if err != nil || applied.GetOutcome().GetRevision().GetNumber() != 1 || len(applied.GetOutcome().GetChanges()) != 4 {
		t.Fatalf("apply: %v, %v", applied, err)
	}
	if _, err := config.Apply(ctx, &grlv1.ApplyRequest{Files: []*grlv1.LimitsFile{limits("payments", 200)}}); err != nil {
		t.Fatal(err)
	}
	got, err := config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{Service: "payments"})
	if err != nil || len(got.GetFiles()) != 1 || got.GetRevision().GetNumber() != 2 || !strings.Contains(string(got.GetFiles()[0].GetData()), "rps: 200") {
		t.Errorf("configuration: %v, %v", got, err)
	}
	if old, err := config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{Revision: 1}); err != nil || len(old.GetFiles()) != 2 {
		t.Errorf("configuration of r1: %v, %v", old, err)
	}
	list, err := config.ListRevisions(ctx, &grlv1.ListRevisionsRequest{})
	if err != nil || len(list.GetRevisions()) != 2 || list.GetRevisions()[1].GetReason() != "first" || list.GetRevisions()[0].GetAuthor() != "ada" || list.GetRevisions()[0].GetAtMs() == 0 {
		t.Errorf("revisions: %v, %v", list, err)
	}
	back, err := config.Rollback(ctx, &grlv1.RollbackRequest{Revision: 1, Reason: "no"})
	if err != nil || back.GetOutcome().GetRevision().GetNumber() != 3 || back.GetOutcome().GetChanges()[0].GetKind() != grlv1.BucketChange_KIND_CHANGED {
		t.Errorf("rollback: %v, %v", back, err)
	}
}

// refusal returns the code of an error, and why the change was refused.
func refusal(t *testing.T, err error) (connect.Code, *grlv1.Refusal) {
	t.Helper()
	var e *connect.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want one of connect", err)
	}
	for _, d := range e.Details() {
		m, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := m.(*grlv1.Refusal); ok {
			return e.Code(), r
		}
	}
	return e.Code(), nil
}

func TestRefusals(t *testing.T) {
	s := serve(t)
	ctx, config := t.Context(), s.config()
	apply := func(r *grlv1.ApplyRequest, files ...*grlv1.LimitsFile) error {
		r.Files = files
		_, err := config.Apply(ctx, r)
		return err
	}
	if err := apply(&grlv1.ApplyRequest{}, limits("payments", 100)); err != nil {
		t.Fatal(err)
	}
	code, why := refusal(t, apply(&grlv1.ApplyRequest{}, &grlv1.LimitsFile{Name: "p.yaml", Data: []byte("service: p\nowners: x\nteam: y\n")}))
	if code != connect.CodeInvalidArgument || len(why.GetProblems()) != 2 || why.GetProblems()[0].GetWhere() != "p.yaml" || why.GetProblems()[0].GetLine() != 2 {
		t.Errorf("invalid: %v, %v", code, why)
	}
	code, why = refusal(t, apply(&grlv1.ApplyRequest{}, limits("payments", 1000)))
	if code != connect.CodeFailedPrecondition || why.GetFindings()[0].GetRail() != grlv1.Finding_RAIL_ABOVE_PRESENT || !why.GetFindings()[0].GetNeedsForce() {
		t.Errorf("guard: %v, %v", code, why)
	}
	if err := apply(&grlv1.ApplyRequest{}, limits("payments", 150)); err != nil {
		t.Fatal(err)
	}
	base := uint64(1)
	code, why = refusal(t, apply(&grlv1.ApplyRequest{Base: &base}, limits("payments", 120)))
	if code != connect.CodeAborted || why.GetConflicts()[0].GetBucket() != "payments/web" || why.GetConflicts()[0].GetRevision().GetNumber() != 2 {
		t.Errorf("conflict: %v, %v", code, why)
	}
	s.who = &access.Person{Name: "ed", Level: access.Editor, Services: []string{"search"}}
	if code, _ = refusal(t, apply(&grlv1.ApplyRequest{}, limits("payments", 151))); code != connect.CodePermissionDenied {
		t.Errorf("rights: %v", code)
	}
	s.who = nil
	if code, _ = refusal(t, apply(&grlv1.ApplyRequest{}, limits("payments", 151))); code != connect.CodeUnauthenticated {
		t.Errorf("nobody: %v", code)
	}
}

// Every procedure refuses a call without a person.
func TestNobodyIsRefused(t *testing.T) {
	s := serve(t)
	s.who = nil
	for _, procedure := range []string{
		"ConfigService/Apply", "ConfigService/Rollback", "ConfigService/Promote", "ConfigService/FinishRollout", "ConfigService/GetConfiguration", "ConfigService/ListRevisions",
		"IncidentService/PlaceCap", "IncidentService/LiftCap", "IncidentService/ListCaps", "IncidentService/Disable", "IncidentService/Enable",
		"AuditService/ListAudit", "AuditService/VerifyAudit",
		"PolicyService/ApplyPolicies", "PolicyService/DeletePolicy", "PolicyService/RollbackPolicies", "PolicyService/GetPolicies", "PolicyService/ListPolicyRevisions",
		"RLCService/RequestRun", "RLCService/ListRuns", "RLCService/GetRun", "RLCService/DecideProposals", "RLCService/GetConfigurator",
		"ConfiguratorService/Attend", "ConfiguratorService/BeginRun", "ConfiguratorService/RecordResults", "ConfiguratorService/AdoptRun",
		"ConfiguratorService/FinishRun", "ConfiguratorService/GetMemory", "ConfiguratorService/ApplyRepository",
	} {
		if code, message := s.call(procedure, "{}"); code != "unauthenticated" {
			t.Errorf("%s: %s, %s", procedure, code, message)
		}
	}
}

func TestIncident(t *testing.T) {
	s := serve(t)
	ctx, incident := t.Context(), s.incident()
	if _, err := s.config().Apply(ctx, &grlv1.ApplyRequest{Files: []*grlv1.LimitsFile{limits("payments", 100)}}); err != nil {
		t.Fatal(err)
	}
	place := &grlv1.PlaceCapRequest{Service: "payments", Caller: "checkout", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 620}, DurationMs: 60_000, Reason: "i7", DryRun: true}
	dry, err := incident.PlaceCap(ctx, place)
	if err != nil || dry.GetCap() != nil || dry.GetEffect().GetText() != "would drop 50 % of checkout's 1,240 rps now" || dry.GetEffect().GetOfferedRps() != 1240 {
		t.Fatalf("dry run: %v, %v", dry, err)
	}
	place.DryRun = false
	placed, err := incident.PlaceCap(ctx, place)
	if err != nil || placed.GetCap().GetCap().GetLimit().GetRps() != 620 || placed.GetCap().GetClientsHolding() != 2 || placed.GetCap().GetCap().GetRemainingMs() < 50_000 {
		t.Fatalf("placed: %v, %v", placed, err)
	}
	if list, err := incident.ListCaps(ctx, &grlv1.ListCapsRequest{}); err != nil || len(list.GetCaps()) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if _, err := incident.LiftCap(ctx, &grlv1.LiftCapRequest{Id: placed.GetCap().GetCap().GetId()}); err != nil {
		t.Error(err)
	}
	off, err := incident.Disable(ctx, &grlv1.DisableRequest{All: true, Reason: "x"})
	if err != nil || !off.GetAllDisabled() {
		t.Errorf("disable: %v, %v", off, err)
	}
	on, err := incident.Enable(ctx, &grlv1.EnableRequest{All: true})
	if err != nil || on.GetAllDisabled() {
		t.Errorf("enable: %v, %v", on, err)
	}

	audit := grlv1connect.NewAuditServiceClient(http.DefaultClient, s.url)
	entries, err := audit.ListAudit(ctx, &grlv1.ListAuditRequest{Actor: "ada", PageSize: 3})
	if err != nil || len(entries.GetEntries()) != 3 || entries.GetEntries()[0].GetAction() != "enable" || entries.GetEntries()[0].GetFrom() != "10.0.0.9" || entries.GetEntries()[0].GetRequestId() != "q7" {
		t.Errorf("audit: %v, %v", entries, err)
	}
	if verified, err := audit.VerifyAudit(ctx, &grlv1.VerifyAuditRequest{}); err != nil || verified.GetEntries() != 5 || verified.GetBrokenEntry() != 0 {
		t.Errorf("verify: %v, %v", verified, err)
	}
	if code, _ := s.call("AuditService/ListAudit", `{"pageSize": 1001}`); code != "invalid_argument" {
		t.Errorf("a page of 1,001: %s", code)
	}
}

// Published: within 1 s each; with slack for a loaded machine.
const bound = slower * 5 * time.Second

func TestBadCallsAreRefused(t *testing.T) {
	s := serve(t)
	if code, message := s.call("ConfigService/Apply", `{"files": [{"name": "p", "data": "`+base64.StdEncoding.EncodeToString(limits("payments", 100).GetData())+`"}]}`); code != "" {
		t.Fatal(message)
	}
	before := s.state()
	calls := desktest.BadCalls()
	for _, c := range calls {
		want := "invalid_argument"
		if c.NotFound {
			want = "not_found"
		}
		began := time.Now()
		code, message := s.call(c.Procedure, c.Body)
		if code != want || message == "" {
			t.Errorf("%s: %q %.200s, want %s", c.Name, code, message, want)
		}
		if took := time.Since(began); took > bound {
			t.Errorf("%s: took %v", c.Name, took)
		}
	}
	t.Logf("%d calls", len(calls))
	if after := s.state(); after != before {
		t.Errorf("state %s, before %s", after, before)
	}
}

// state returns what bad calls must not change.
func (s *server) state() string {
	state, err := s.ledger.State(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("r%d, %+v", state.Head.Number, state.Incident)
}

func TestPoisonFilesAreRefused(t *testing.T) {
	s := serve(t)
	for _, c := range desktest.Poison() {
		request := &grlv1.ApplyRequest{Prune: true, Force: true, Reason: "poison"}
		for _, f := range c.Files() {
			request.Files = append(request.Files, &grlv1.LimitsFile{Name: f.Name, Data: f.Data})
		}
		began := time.Now()
		_, err := s.config().Apply(t.Context(), request)
		if took := time.Since(began); took > bound {
			t.Errorf("%s: took %v", c.Name, took)
		}
		code, why := refusal(t, err)
		if code == connect.CodeResourceExhausted && strings.HasPrefix(c.Name, "large: over 64 MiB") {
			continue // refused before it was read
		}
		if code != connect.CodeInvalidArgument || len(why.GetProblems()) == 0 || why.GetProblems()[0].GetLine() == 0 && !c.Whole {
			t.Errorf("%s: %v %v", c.Name, code, why)
		}
	}
	if state := s.state(); !strings.HasPrefix(state, "r0,") {
		t.Errorf("state %s, want nothing changed", state)
	}
}

// Bytes that are no message, or too many, are refused as such.
func TestGarbageIsRefused(t *testing.T) {
	s := serve(t)
	for name, body := range map[string][]byte{
		"a number that is cut": {0x08},
		"cut":                  {0x0a, 0x7f, 0x01},
		"endless number":       bytes.Repeat([]byte{0xff}, 64),
		"text":                 []byte("service: payments\n"),
		"above the bound":      make([]byte, 2<<20),
	} {
		for _, procedure := range []string{"ConfigService/Promote", "IncidentService/LiftCap", "AuditService/ListAudit"} {
			status, answer := s.post(procedure, "application/proto", body)
			if status < 400 || status >= 500 {
				t.Errorf("%s: %s answers %d %q", name, procedure, status, answer)
			}
		}
	}
	if status, _ := s.post("ConfigService/Apply", "text/plain", []byte("{}")); status != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain answers %d", status)
	}
}

func TestElsewhere(t *testing.T) {
	mux := http.NewServeMux()
	for _, r := range api.Elsewhere("ask the parent") {
		mux.Handle(r.Path, r.Handler)
	}
	http := httptest.NewServer(mux)
	defer http.Close()
	_, err := grlv1connect.NewConfigServiceClient(http.Client(), http.URL).Promote(t.Context(), &grlv1.PromoteRequest{})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "ask the parent") {
		t.Errorf("error = %v", err)
	}
}
