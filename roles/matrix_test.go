package roles

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"grl/proto/access"
	"grl/proto/tlsfiles"
)

// staff are people whose token is the word for their level.
type staff struct{}

func (staff) Person(_ context.Context, bearer, _ string) (access.Person, error) {
	for _, level := range []access.Level{access.Viewer, access.Editor, access.Admin} {
		if bearer == level.String() {
			return access.Person{Name: bearer, Level: level}, nil
		}
	}
	return access.Person{}, access.ErrUnknown
}

func (staff) Open(context.Context) bool { return false }

func (staff) Bootstrap(context.Context) (string, error) { return "", nil }

var rlcNode = access.Node{Role: access.Configurator, Zone: "eu"}

// paths lists what a control port may serve: all procedures that there are, and
// one page of each kind.
func paths() []string {
	var all []string
	protoregistry.GlobalFiles.RangeFilesByPackage("grl.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				all = append(all, fmt.Sprintf("/%s/%s", s.FullName(), s.Methods().Get(j).Name()))
			}
		}
		return true
	})
	slices.Sort(all)
	all = append(all, "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
	return append(all, "/healthz", "/readyz", "/metrics", "/login", "/logout", "/first", "/oidc/start", "/oidc/callback",
		"/assets/grl.css", "/favicon.ico", "/hooks/repository", "/", "/buckets", "/fleet", "/explain", "/any-other-page")
}

// TestAccessMatrix asks for every path as everyone, over real TLS, and compares
// who is let through with the table of docs/security.md.
func TestAccessMatrix(t *testing.T) {
	ca := newTestCA(t, testDomain)
	callers := []struct {
		name   string
		dial   *http.Client
		bearer string
	}{
		{"nobody", ca.with(0, 0), ""},
		{"viewer", ca.with(0, 0), "viewer"},
		{"editor", ca.with(0, 0), "editor"},
		{"admin", ca.with(0, 0), "admin"},
		{"client", ca.with(0, 0, load(t, ca.issue(payments))), ""},
		{"aggregator", ca.with(0, 0, load(t, ca.issue(zone))), ""},
		{"controller", ca.with(0, 0, load(t, ca.issue(region))), ""},
		{"configurator", ca.with(0, 0, load(t, ca.issue(rlcNode))), ""},
	}
	got := map[string][3]string{}
	for at, role := range []string{access.Controller, access.Aggregator, access.Configurator} {
		srv := gated(t, ca, role)
		for _, path := range paths() {
			var may []string
			for _, c := range callers {
				if letThrough(t, c.dial, srv.URL+path, c.bearer) {
					may = append(may, c.name)
				}
			}
			row := got[path]
			row[at] = strings.Join(may, ", ")
			got[path] = row
		}
	}
	if diff := cmp.Diff(documentedAccess(t), got); diff != "" {
		t.Errorf("docs/security.md differs from who is let through (-docs +code):\n%s", diff)
	}
}

// gated returns a TLS server of a role, with staff where people come, which
// answers with 204 to whom its gate lets through.
func gated(t *testing.T, ca testCA, role string) *httptest.Server {
	t.Helper()
	node := map[string]access.Node{access.Controller: region, access.Aggregator: zone, access.Configurator: rlcNode}[role]
	files, err := tlsfiles.Open(tlsfiles.Options{Config: ca.issue(node), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	o := access.Options{Role: role, Domain: testDomain, Registry: prometheus.NewRegistry()}
	if role == access.Controller {
		o.People = staff{}
	}
	srv := httptest.NewUnstartedServer(access.NewGate(o).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})))
	srv.TLS = files.Server(tls.VersionTLS13)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func letThrough(t *testing.T, dial *http.Client, url, bearer string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := dial.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	switch resp.StatusCode {
	case http.StatusNoContent:
		return true
	case http.StatusUnauthorized, http.StatusForbidden:
		return false
	default:
		t.Fatalf("%s answers %d %s", url, resp.StatusCode, body)
		return false
	}
}

// documentedAccess returns who may have each path at a controller, at an
// aggregator and at a configurator, by docs/security.md.
func documentedAccess(t *testing.T) map[string][3]string {
	t.Helper()
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][3]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(/[^`]*)` \\| ([^|]*) \\| ([^|]*) \\| ([^|]*) \\|$").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = [3]string{words(m[2]), words(m[3]), words(m[4])}
	}
	return rows
}

// words spells out the short forms of the table.
func words(cell string) string {
	switch cell {
	case "anyone":
		return "nobody, viewer, editor, admin, client, aggregator, controller, configurator"
	case "viewer":
		return "viewer, editor, admin"
	case "editor":
		return "editor, admin"
	case "-":
		return ""
	default:
		return cell
	}
}

// TestNobodyGetsIn asks real roles for everything with nothing to prove: what
// they mount besides what anyone may have is behind the gate.
func TestNobodyGetsIn(t *testing.T) {
	ca := newTestCA(t, testDomain)
	for key, node := range map[string]access.Node{"controller.listen": region, "aggregator.listen": zone} {
		address := run(t, tlsConfig(ca.issue(node)), slog.DiscardHandler, node.Role).at(t, key)
		for _, path := range paths() {
			rule, _ := access.RuleOf(path)
			if rule.Anyone {
				continue
			}
			if letThrough(t, ca.with(0, 0), "https://"+address+path, "") {
				t.Errorf("%s of a %s answers who proves nothing", path, node.Role)
			}
		}
	}
}
