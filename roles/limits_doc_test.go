package roles

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"grl/roles/client/proxy"
)

// TestDocumentedLimits compares the tables of docs/limits.md with the constants
// that its rows name, exported or not.
func TestDocumentedLimits(t *testing.T) {
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	packages := map[string]*types.Package{}
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| ([^|]+) \\| [^|]+ \\| `([a-z0-9/]+)\\.([A-Za-z0-9.]+)` \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		bound, pkg, name := m[1], m[2], m[3]
		documented[pkg+"."+name] = true
		want, ok := serverBound(pkg, name)
		if !ok {
			if packages[pkg] == nil {
				packages[pkg] = constantsOf(t, pkg)
			}
			if want, ok = constantValue(packages[pkg], name); !ok {
				t.Errorf("docs/limits.md names %s.%s, which is no constant", pkg, name)
				continue
			}
		}
		if got := boundValue(t, bound); !constant.Compare(got, token.EQL, want) {
			t.Errorf("docs/limits.md: %s.%s is %q, in the code %v", pkg, name, bound, want)
		}
	}
	if len(documented) == 0 {
		t.Fatal("docs/limits.md has no table")
	}
	for _, pkg := range []string{"limiter/limitsfile", "proto/wire"} {
		for _, name := range packages[pkg].Scope().Names() {
			_, isConstant := packages[pkg].Scope().Lookup(name).(*types.Const)
			if isConstant && strings.HasPrefix(name, "Max") && !documented[pkg+"."+name] {
				t.Errorf("docs/limits.md lacks %s.%s", pkg, name)
			}
		}
	}
}

// serverBound returns a bound that is a field of the proxies' server.
func serverBound(pkg, name string) (constant.Value, bool) {
	if pkg != "roles/client/proxy" {
		return nil, false
	}
	s := proxy.Server(nil, nil)
	value, ok := map[string]int64{
		"Server.MaxHeaderBytes":             int64(s.MaxHeaderBytes),
		"Server.ReadHeaderTimeout":          int64(s.ReadHeaderTimeout),
		"Server.IdleTimeout":                int64(s.IdleTimeout),
		"Server.HTTP2.MaxConcurrentStreams": int64(s.HTTP2.MaxConcurrentStreams),
	}[name]
	return constant.MakeInt64(value), ok
}

// boundValue reads the number that a bound begins with: bytes for KiB and MiB,
// nanoseconds for s, min and h, else as it stands.
func boundValue(t *testing.T, bound string) constant.Value {
	t.Helper()
	number, unit, _ := strings.Cut(bound, " ")
	value := constant.MakeFromLiteral(strings.ReplaceAll(number, ",", ""), token.FLOAT, 0)
	if value.Kind() == constant.Unknown {
		t.Fatalf("docs/limits.md: %q does not begin with a number", bound)
	}
	factor := map[string]int64{
		"KiB": 1 << 10, "MiB": 1 << 20, "s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour),
	}[unit]
	return constant.BinaryOp(value, token.MUL, constant.MakeInt64(max(factor, 1)))
}

func constantValue(p *types.Package, name string) (constant.Value, bool) {
	c, ok := p.Scope().Lookup(name).(*types.Const)
	if !ok || c.Val().Kind() == constant.Unknown {
		return nil, false
	}
	return constant.ToFloat(c.Val()), true
}

// constantsOf evaluates the constants of one of our packages from its source.
// What else it declares does not matter, so imports are left out, but for the
// units of time and the constants of other packages of ours.
func constantsOf(t *testing.T, pkg string) *types.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	config := types.Config{Importer: constantsOnly{t}, Error: func(error) {}}
	p, _ := config.Check(pkg, set, files, nil) // of what was left out
	return p
}

// constantsOnly knows the units of package time, and what our packages declare.
type constantsOnly struct{ t *testing.T }

// Import implements types.Importer.
func (c constantsOnly) Import(path string) (*types.Package, error) {
	if pkg, ours := strings.CutPrefix(path, "grl/limiter"); ours {
		return constantsOf(c.t, "limiter"+pkg), nil
	}
	if path != "time" {
		return nil, fmt.Errorf("import %q: left out", path)
	}
	p := types.NewPackage("time", "time")
	for name, unit := range map[string]time.Duration{
		"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
	} {
		p.Scope().Insert(types.NewConst(token.NoPos, p, name, types.Typ[types.Int64], constant.MakeInt64(int64(unit))))
	}
	p.MarkComplete()
	return p, nil
}
