package roles

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const exampleFile = "../grl.example.toml"

func TestExampleEqualsDefaults(t *testing.T) {
	c, err := Load(exampleFile, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c, cmp.Transformer("list", emptyAsNil)); diff != "" {
		t.Errorf("grl.example.toml differs from the defaults (-default +example):\n%s", diff)
	}
}

// emptyAsNil makes an empty list in a file equal to one that is not there.
func emptyAsNil(list []string) map[int]string { return maps.Collect(slices.All(list)) }

func TestExampleHasEveryKey(t *testing.T) {
	values, err := readFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		section, key, _ := strings.Cut(k.Name, ".")
		if _, ok := values[section].(map[string]any)[key]; !ok {
			t.Errorf("grl.example.toml lacks %s", k.Name)
		}
	}
}

func TestDocumentedKeys(t *testing.T) {
	text, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{} // key → default
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[a-z_]+)` \\| `([^`]*)` \\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	want := map[string]string{}
	for _, k := range Keys() {
		want[k.Name] = spell(k.Default)
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("docs/config.md differs from the keys and defaults (-code +docs):\n%s", diff)
	}
}

// spell writes a default as TOML does.
func spell(value any) string {
	switch v := value.(type) {
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	default:
		return fmt.Sprintf(`"%v"`, v)
	}
}

func TestNoKeyLooksLikeKubernetes(t *testing.T) {
	for _, k := range Keys() {
		if injected.MatchString(k.Env()) {
			t.Errorf("%s: a service of Kubernetes may set %s", k.Name, k.Env())
		}
	}
}

func TestConfigFiles(t *testing.T) {
	files, err := filepath.Glob("../testdata/config/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/config: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := CheckConfig(file)
			if strings.HasPrefix(filepath.Base(file), "good-") {
				if got != nil {
					t.Errorf("CheckConfig: %v, want no error", got)
				}
				return
			}
			first, _, _ := strings.Cut(string(text), "\n")
			want, ok := strings.CutPrefix(first, "# want: ")
			if !ok {
				t.Fatal("the first line does not say what to expect")
			}
			if got == nil || !strings.Contains(got.Error(), strings.TrimSpace(want)) {
				t.Errorf("CheckConfig: %v\nwant: %s", got, want)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grl.toml")
	text := "[client]\nzone = \"file\"\nregion = \"file\"\nservice = \"file\"\naggregators = [\"http://file:1\", \"http://file:2\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"HOME=/", "GRL_CLIENT_ZONE=env", "GRL_CLIENT_REGION=env", "GRL_CLIENT_HOLD=3s",
		"GRL_CLIENT_AGGREGATORS=http://env:1", "GRL_CLIENT_IDENTITY_HEADERS=x-a, x-b", "GRL_CLIENT_SERVICE=",
	}
	c, err := Load(file, environ, map[string]any{"client.zone": "flag", "client.decay": time.Second})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Client.Zone = "flag"
	want.Client.Region = "env"
	want.Client.Service = ""                           // set but empty wins over the file
	want.Client.Aggregators = []string{"http://env:1"} // a list replaces a list
	want.Client.IdentityHeaders = []string{"x-a", "x-b"}
	want.Client.Hold = 3 * time.Second
	want.Client.Decay = time.Second
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	tests := []struct {
		name, variable string
		want           string // "" for no error
	}{
		{"not ours", "GRLX=1", ""},
		{"misspelt key", "GRL_CLIENT_ZOEN=a", "unknown environment variable GRL_CLIENT_ZOEN; nearest is GRL_CLIENT_ZONE"},
		{"misspelt section", "GRL_CONTROLER_LISTEN=a", "unknown environment variable GRL_CONTROLER_LISTEN; nearest is GRL_CONTROLLER_LISTEN"},
		{"lower case", "GRL_client_zone=a", "unknown environment variable GRL_client_zone"},
		{"no unit", "GRL_CLIENT_HOLD=5", `environment variable GRL_CLIENT_HOLD: "5" is not a duration like "10s"`},
		{"service host of Kubernetes", "GRL_CONTROLLER_SERVICE_HOST=10.0.0.1", ""},
		{"service port of Kubernetes", "GRL_CONTROLLER_SERVICE_PORT_HTTP=7070", ""},
		{"port of Kubernetes", "GRL_CONTROLLER_PORT_7070_TCP_ADDR=10.0.0.1", ""},
		{"port of a service called grl", "GRL_PORT=tcp://10.0.0.1:7070", ""},
		{"almost a port", "GRL_CLIENT_PORTS=1", "unknown environment variable GRL_CLIENT_PORTS"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load("", []string{tt.variable}, nil)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Load: %v, want no error", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Load: %v\nwant: %s", err, tt.want)
			}
		})
	}
}

func TestIgnoredEnvIsToldOf(t *testing.T) {
	got := ignoredEnv([]string{"GRL_X_SERVICE_HOST=1", "GRL_CLIENT_ZONE=a", "X_SERVICE_HOST=1"})
	if want := []string{"GRL_X_SERVICE_HOST"}; !slices.Equal(got, want) {
		t.Errorf("ignoredEnv = %v, want %v", got, want)
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grl.toml")
	if err := os.WriteFile(file, []byte("[client]\nzoen = \"a\"\n[agregator]\nzone = \"a\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, []string{"GRL_NONSENSE=1"}, nil)
	for _, want := range []string{"client.zoen", "[agregator]", "GRL_NONSENSE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load: %v\nlacks %s", err, want)
		}
	}
}

func TestOnlyRunningRolesAreValidated(t *testing.T) {
	c := Default()
	c.Controller.DB = ""
	if err := c.Validate("client", "aggregator"); err != nil {
		t.Errorf("Validate(client, aggregator): %v, want no error: the controller does not run", err)
	}
	if err := c.Validate("controller"); err == nil {
		t.Error("Validate(controller): no error, want one for controller.db")
	}
}

func TestParseRoles(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  []string
		err   string
	}{
		{"order of the table, each once", []string{"controller", "client", "client"}, []string{"client", "controller"}, ""},
		{"all", []string{"all"}, []string{"client", "aggregator", "controller", "configurator"}, ""},
		{"all and one", []string{"client", "all"}, []string{"client", "aggregator", "controller", "configurator"}, ""},
		{"none", nil, nil, "say --role client, aggregator, controller, configurator or all"},
		{"misspelt", []string{"agregator"}, nil, `unknown role "agregator"; nearest is "aggregator"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseRoles(tt.names)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, ErrUsage) {
					t.Errorf("ParseRoles(%q): %v, want an ErrUsage with %q", tt.names, err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("ParseRoles(%q) = %v, %v, want %v", tt.names, got, err, tt.want)
			}
		})
	}
}

func TestBeyondLoopback(t *testing.T) {
	tests := []struct {
		address string
		control bool
		want    bool
	}{
		{"127.0.0.1:7070", true, false},
		{"127.9.9.9:7070", true, false},
		{"[::1]:7070", true, false},
		{"localhost:7070", true, false},
		{":7070", true, true},
		{"0.0.0.0:7070", true, true},
		{"[::]:7070", true, true},
		{"10.0.0.1:7070", true, true},
		{"localhost.example.com:7070", true, true},
		{"0.0.0.0:9090", false, false}, // the workload's traffic binds as told
	}
	for _, tt := range tests {
		got := len(beyondLoopback([]listener{{"key", tt.address, tt.control}})) == 1
		if got != tt.want {
			t.Errorf("beyondLoopback(%s, control %v) = %v, want %v", tt.address, tt.control, got, tt.want)
		}
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"zone", "zone", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"zoen", "zone", 2},
		{"kitten", "sitting", 3},
		{"listen", "listens", 1},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzStrictFile(f *testing.F) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte("[client]\nzoen = 1\n[[tls.peers]]\n"))
	known := Keys()
	f.Fuzz(func(t *testing.T, text []byte) {
		err := checkStrict("grl.toml", text)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "grl.toml") {
			t.Errorf("error %q lacks the file", err)
		}
		if strings.Contains(err.Error(), "unknown key") && !slices.ContainsFunc(known, func(k Key) bool {
			return strings.Contains(err.Error(), fmt.Sprintf("nearest is %q", k.Name))
		}) {
			t.Errorf("error %q names no key", err)
		}
	})
}

func TestLeadsTo(t *testing.T) {
	for _, tt := range []struct {
		address, listen string
		want            bool
	}{
		{"127.0.0.1:9090", "127.0.0.1:9090", true},
		{"localhost:9090", "127.0.0.1:9090", true},
		{"127.0.0.1:9090", "localhost:9090", true},
		{"127.0.0.1:9090", "0.0.0.0:9090", true},
		{"127.0.0.1:9090", ":9090", true},
		{"[::1]:9090", "[::]:9090", true},
		{"[::1]:9090", "[::1]:9090", true},
		{"0.0.0.0:9090", "127.0.0.1:9090", true},
		{"app:9090", "app:9090", true},
		{"127.0.0.1:9091", "127.0.0.1:9090", false},
		{"127.0.0.2:9090", "127.0.0.1:9090", false}, // two sockets
		{"app:9090", "0.0.0.0:9090", false},         // not known without asking
		{"10.0.0.1:9090", "127.0.0.1:9090", false},
		{"127.0.0.1:0", "127.0.0.1:0", false}, // any free one
	} {
		if got := leadsTo(tt.address, tt.listen); got != tt.want {
			t.Errorf("leadsTo(%s, %s) = %v, want %v", tt.address, tt.listen, got, tt.want)
		}
	}
}

// What is logged of the address that alerts are sent to does not tell its path,
// which may be secret.
func TestLoggedSettingsTellNoSecret(t *testing.T) {
	c := Default()
	c.Controller.AlertWebhook = "https://hooks.example.com/services/T0/secret-path?key=secret-key"
	c.Controller.DB = "elsewhere"
	want := []string{"controller.db=elsewhere", "controller.alert_webhook=https://hooks.example.com/…"}
	if got := changes(Default(), c); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
