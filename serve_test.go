package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/uplink"
)

func TestWrongUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bad.toml"), "[client]\nzoen = \"a\"\n")
	write(t, filepath.Join(dir, "incomplete.toml"), "[controller]\ndb = \"\"\n")

	tests := []struct {
		name string
		args []string
		env  string
		code int
		want string // part of standard error
	}{
		{"unknown command", []string{"serv"}, "", 2, `unknown command "serv"`},
		{"unknown flag", []string{"serve", "--rolle", "client"}, "", 2, "unknown flag --rolle; nearest is --role"},
		{"unknown key as a flag", []string{"serve", "--client.zoen", "a"}, "", 2, "unknown flag --client.zoen; nearest is --client.zone"},
		{"flag without a unit", []string{"serve", "--client.hold", "5"}, "", 2, "client.hold"},
		{"argument", []string{"serve", "client"}, "", 2, `"client"`},
		{"no role", []string{"serve"}, "", 2, "no role; say --role client, aggregator, controller, configurator or all"},
		{"unknown role", []string{"serve", "--role", "agregator"}, "", 2, `nearest is "aggregator"`},
		{"unknown key in the file", []string{"serve", "--role", "client", "--config", "bad.toml"}, "", 2, `bad.toml:2: unknown key "client.zoen"; nearest is "client.zone"`},
		{"no such file", []string{"serve", "--role", "client", "--config", "none.toml"}, "", 2, "none.toml"},
		{"unknown variable", []string{"serve", "--role", "client"}, "GRL_CLIENT_ZOEN=a", 2, "nearest is GRL_CLIENT_ZONE"},
		{"wrong value", []string{"serve", "--role", "client", "--client.decay", "5ns"}, "", 2, "client.decay: 5ns"},
		{"incomplete section of a role that runs", []string{"serve", "--role", "controller", "--config", "incomplete.toml"}, "", 2, "controller.db: empty"},
		{"beyond loopback", []string{"serve", "--role", "client", "--client.admin", "0.0.0.0:0"}, "", 2, "client.admin: others can reach 0.0.0.0:0"},
		{"port in use", []string{"serve", "--role", "client", "--client.admin", taken.Addr().String()}, "", 1, "client.admin: " + taken.Addr().String() + " is taken"},
		{"nobody to ask", []string{"healthcheck", freeAddress(t)}, "", 1, "check health"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := grl(t, dir, tt.args...)
			if tt.env != "" {
				cmd.Env = append(cmd.Env, tt.env)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != tt.code {
				t.Errorf("grl %v: %v, want exit code %d", tt.args, err, tt.code)
			}
			if !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("grl %v prints %q, want %q in it", tt.args, stderr.String(), tt.want)
			}
		})
	}
}

func TestTakenPortLeavesNoStore(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	if err := grl(t, dir, "serve", "--role", "controller", "--controller.listen", taken.Addr().String()).Run(); err == nil {
		t.Error("started on a taken port")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left %v, %v, want nothing", files, err)
	}
}

func TestVersion(t *testing.T) {
	out, err := grl(t, t.TempDir(), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"grl ", "\ncommit: ", "\nbrowser assets: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("grl version prints %q, want %q in it", out, want)
		}
	}
}

func TestAllRolesAnswer(t *testing.T) {
	p := serveAll(t, t.TempDir())
	for _, key := range []string{"client.admin", "aggregator.listen", "controller.listen"} {
		base := "http://" + p.address(key)
		if status, body := get(t, base+"/healthz"); status != http.StatusOK {
			t.Errorf("%s /healthz: %d %s, want 200", key, status, body)
		}
		eventually(t, key+" is ready", func() bool {
			status, _ := get(t, base+"/readyz")
			return status == http.StatusOK
		})
		_, metrics := get(t, base+"/metrics")
		for _, want := range []string{"go_goroutines", "process_resident_memory_bytes", "grl_client_", "grl_aggregator_", "grl_controller_"} {
			if !strings.Contains(metrics, "\n"+want) {
				t.Errorf("%s /metrics lacks %s", key, want)
			}
		}
		if err := grl(t, t.TempDir(), "healthcheck", p.address(key)).Run(); err != nil {
			t.Errorf("grl healthcheck of %s: %v", key, err)
		}
	}
	for _, key := range []string{"aggregator.listen", "controller.listen"} {
		checkGRPC(t, "http://"+p.address(key))
	}

	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	for _, unwanted := range []string{"requests in flight were cut at the end of the drain", "role did not stop in time"} {
		if facts, _ := p.find(unwanted); facts != nil {
			t.Errorf("while idle: %v", facts)
		}
	}
}

// checkGRPC asks for health and services as a gRPC client does.
func checkGRPC(t *testing.T, base string) {
	t.Helper()
	httpClient := uplink.HTTPClient()
	defer httpClient.CloseIdleConnections()
	checker := grpchealth.NewClient(httpClient, base, connect.WithGRPC(), connect.WithSendGzip())
	health, err := checker.Check(t.Context(), &grpchealth.CheckRequest{})
	if err != nil || health.Status != grpchealth.StatusServing {
		t.Errorf("gRPC health at %s: %v, %v, want serving", base, health, err)
	}
	if _, err := checker.Check(t.Context(), &grpchealth.CheckRequest{Service: "grl.v1.NoService"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("%s: health of a service that is not here: %v, want not found", base, err)
	}
	// Small as it comes, but not as it is unpacked.
	if _, err := checker.Check(t.Context(), &grpchealth.CheckRequest{Service: strings.Repeat("a", 1<<20)}); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("gRPC health of a service with a name of 1 MiB at %s: %v, want resource exhausted", base, err)
	}
	stream := grpcreflect.NewClient(httpClient, base, connect.WithGRPC()).NewStream(t.Context())
	services, err := stream.ListServices()
	if err != nil || !slices.Contains(services, protoreflect.FullName(grlv1connect.TreeServiceName)) {
		t.Errorf("gRPC reflection at %s: %v, %v, want %s", base, services, err, grlv1connect.TreeServiceName)
	}
	if _, err := stream.Close(); err != nil {
		t.Errorf("close reflection stream: %v", err)
	}
}

// A site that lets its name point to 127.0.0.1 must not read the API.
func TestAPIRefusesForeignHosts(t *testing.T) {
	p := serve(t, t.TempDir(), "--role", "controller", "--controller.listen", "127.0.0.1:0")
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		url := "http://" + p.address("controller.listen") + grlv1connect.ViewServiceListBucketsProcedure
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Host = host
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("host %q: %d, want %d", host, res.StatusCode, want)
		}
	}
}

func TestClientIsReadyWithoutControlPlane(t *testing.T) {
	p := serve(t, t.TempDir(), "--role", "client", "--client.admin", "127.0.0.1:0", "--client.aggregators", "http://"+freeAddress(t))
	if status, body := get(t, "http://"+p.address("client.admin")+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: %d %s, want 200", status, body)
	}
}

func TestDrainFinishesRequests(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, "done")
	}))
	defer upstream.Close()
	p := serve(t, t.TempDir(), "--role", "client", "--client.admin", "127.0.0.1:0", "--client.listen", "127.0.0.1:0",
		"--client.service", "payments", "--client.upstream", upstream.URL, "--client.aggregators", "http://"+freeAddress(t))
	proxy, admin := p.address("client.listen"), p.address("client.admin")

	answer := make(chan string, 1)
	go func() {
		status, body := get(t, "http://"+proxy+"/")
		answer <- fmt.Sprint(status, " ", body)
	}()
	select {
	case <-arrived:
	case got := <-answer:
		t.Fatalf("answer %q before the upstream was asked", got)
	}
	p.signal(syscall.SIGTERM)
	if !p.await("draining") {
		t.Fatal("ended without draining")
	}
	if status, body := get(t, "http://"+admin+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
		t.Errorf("/readyz while draining: %d %q, want 503 with draining", status, body)
	}
	eventually(t, "the proxy accepts no more", func() bool {
		_, err := net.Dial("tcp", proxy)
		return err != nil
	})
	select {
	case <-p.exited:
		t.Error("ended with a request in flight")
	default:
	}
	close(release)
	if got := <-answer; got != "200 done" {
		t.Errorf("request in flight at SIGTERM got %q, want 200 done", got)
	}
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d after the drain, want 0", code)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	arrived := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer upstream.Close()
	p := serve(t, t.TempDir(), "--role", "client", "--client.admin", "127.0.0.1:0", "--client.listen", "127.0.0.1:0",
		"--client.service", "payments", "--client.upstream", upstream.URL, "--client.aggregators", "http://"+freeAddress(t))
	go get(t, "http://"+p.address("client.listen")+"/")
	<-arrived
	p.signal(syscall.SIGTERM)
	if !p.await("draining") {
		t.Fatal("ended without draining")
	}
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != -1 {
		t.Errorf("exit code %d, want death by the second signal", code)
	}
}

func TestHangupReloadsLimits(t *testing.T) {
	dir := t.TempDir()
	limits := filepath.Join(dir, "limits")
	if err := os.Mkdir(limits, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(limits, "payments.yaml")
	text := "service: payments\nowner: team-payments\nbuckets:\n  - name: everything\n    limit: {rps: %d}\n    behavior: deny\n"
	write(t, file, fmt.Sprintf(text, 1000))
	p := serveAll(t, dir, "--controller.limits", limits)
	controller := grlv1connect.NewViewServiceClient(uplink.HTTPClient(), "http://"+p.address("controller.listen"))
	has := func(limit float64) func() bool {
		return func() bool {
			list, err := controller.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{Service: "payments"})
			return err == nil && len(list.Buckets) == 1 && list.Buckets[0].LimitRps == limit
		}
	}
	eventually(t, "limit 1000", has(1000))
	write(t, file, fmt.Sprintf(text, 1200))
	p.signal(syscall.SIGHUP)
	eventually(t, "limit 1200", has(1200))
}

func TestFileChangeIsNoticed(t *testing.T) {
	dir := t.TempDir()
	// As Kubernetes mounts a ConfigMap: the file is a link into a directory that
	// is swapped as a whole.
	for name, level := range map[string]string{"v1": "info", "v2": "debug"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "grl.toml"), "[client]\nadmin = \"127.0.0.1:0\"\nzone = \""+name+"\"\n[log]\nlevel = \""+level+"\"\n")
	}
	link := func(target, name string) {
		t.Helper()
		if err := errors.Join(os.Symlink(target, filepath.Join(dir, "new")), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	link("v1", "data")
	link(filepath.Join("data", "grl.toml"), "grl.toml")
	p := serve(t, dir, "--role", "client")
	link("v2", "data")
	if !p.await("changed keys need a restart") {
		t.Fatal("ended")
	}
	reloaded, _ := p.find("changed log level")
	if reloaded["log_level"] != "debug" {
		t.Errorf("log level %v after the swap, want debug", reloaded["log_level"])
	}
	pending, _ := p.find("changed keys need a restart")
	if keys, _ := pending["keys"].([]any); !slices.Contains(keys, any("client.zone=v2")) || len(keys) != 1 {
		t.Errorf("keys that need a restart: %v, want client.zone=v2", pending["keys"])
	}
}

func TestWrongFileChangesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "grl.toml")
	write(t, file, "[client]\nadmin = \"127.0.0.1:0\"\n")
	p := serve(t, dir, "--role", "client")
	write(t, file, "[client]\nadmni = \"127.0.0.1:0\"\n")
	if !p.await("configuration not reloaded; the old one stays") {
		t.Fatal("ended")
	}
	if status, body := get(t, "http://"+p.address("client.admin")+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz after a wrong file: %d %s, want 200", status, body)
	}
}

func TestOpenControlPortIsWarnedOf(t *testing.T) {
	p := serve(t, t.TempDir(), "--role", "client", "--client.admin", "0.0.0.0:0", "--insecure-i-know")
	if !p.await("control port is open to other machines, without TLS") {
		t.Error("no warning")
	}
}
