package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "grl"

// everything marks packages that may import all of ours.
const everything = "everything"

// mayImport says which of our packages each of them may import: the table of
// docs/architecture.md. Arrows point down only. A package that is not listed
// fails the test, so it cannot be forgotten.
var mayImport = map[string][]string{
	".":                      {"roles", "roles/command"},
	"roles":                  {everything},
	"roles/command":          {everything},
	"roles/command/demo":     {everything},
	"roles/command/simulate": {"limiter", "limiter/limitsfile", "roles/command/chart", "roles/fleet"},
	"roles/command/backtest": {"policy", "policy/backtest", "roles/command/chart", "roles/command/terminal"},
	"roles/command/chart":    {},
	"roles/rolestest":        {everything},
	"roles/command/remote":   {protoTree, "roles/command/terminal"},
	"roles/command/terminal": {},
	"roles/pki":              {"proto/access"},

	"roles/command/simulate/internal/writetable": {"roles/command/simulate"}, // a program of task simulate-table

	"roles/client":       {"limiter", "limiter/law", protoTree},
	"roles/client/proxy": {"limiter", "limiter/httplimit", protoTree},
	"roles/aggregator":   {"limiter", "limiter/law", protoTree},
	"roles/controller":   {"limiter", "limiter/law", "limiter/limitsfile", "policy", "policy/alert", "policy/backtest", "policy/policyfile", "policy/guard", protoTree, "roles/controller/api", "roles/controller/desk", "roles/controller/notify", "roles/controller/digest", "roles/controller/people", "store", "store/ledger", "web", "web/page"},
	"roles/fleet":        {"limiter", "limiter/law", "limiter/limitsfile"},

	"roles/configurator":            {"limiter", "limiter/limitsfile", "policy", "policy/policyfile", protoTree, "roles/configurator/compute", "roles/configurator/history", "roles/configurator/repository", "roles/configurator/webhook"},
	"roles/configurator/compute":    {"limiter", "limiter/limitsfile", "policy", "policy/policyfile", protoTree, "roles/configurator/history"},
	"roles/configurator/history":    {"limiter", "policy", protoTree},
	"roles/configurator/repository": {"limiter/limitsfile"},
	"roles/configurator/webhook":    {},

	"roles/controller/api":           {"limiter", "limiter/limitsfile", "policy", "policy/guard", "policy/policyfile", protoTree, "roles/controller/desk", "store", "store/ledger"},
	"roles/controller/desk":          {"limiter", "limiter/limitsfile", "policy", "policy/guard", "policy/policyfile", protoTree, "store/ledger"},
	"roles/controller/desk/desktest": {"limiter/limitsfile"},
	"roles/controller/digest":        {"limiter", "policy/verdict", "store", "web/page"},
	"roles/controller/notify":        {"policy/alert"},
	"roles/controller/people":        {"limiter", protoTree, "store", "store/ledger"},

	"roles/controller/api/internal/writedocs": {"proto/access"}, // a program of go generate

	"web":                     {protoTree, "web/account", "web/alerts", "web/bucket", "web/buckets", "web/caps", "web/changes", "web/explain", "web/fleet", "web/overview", "web/page", "web/policies", "web/runs", "web/shadow"},
	"web/account":             {protoTree, "web/format", "web/page"},
	"web/alerts":              {protoTree, "web/format", "web/page"},
	"web/bucket":              {"limiter", "limiter/limitsfile", "policy", "policy/policyfile", "policy/verdict", protoTree, "web/chart", "web/diff", "web/format", "web/page"},
	"web/buckets":             {"limiter", protoTree, "web/chart", "web/format", "web/page"},
	"web/caps":                {"limiter", protoTree, "web/chart", "web/format", "web/page"},
	"web/changes":             {"limiter", "limiter/limitsfile", protoTree, "web/diff", "web/format", "web/page"},
	"web/explain":             {"limiter", "limiter/httplimit", protoTree, "web/format", "web/page"},
	"web/fleet":               {protoTree, "web/format", "web/page"},
	"web/overview":            {"limiter", "policy/verdict", protoTree, "web/chart", "web/format", "web/page"},
	"web/policies":            {"limiter", "limiter/yamlfile", "policy", "policy/backtest", "policy/policyfile", protoTree, "web/chart", "web/diff", "web/format", "web/page"},
	"web/runs":                {"policy", protoTree, "web/chart", "web/diff", "web/format", "web/page"},
	"web/shadow":              {"limiter", "policy", "policy/verdict", protoTree, "web/chart", "web/diff", "web/format", "web/page"},
	"web/page":                {"limiter", "policy/verdict", protoTree, "web/format"},
	"web/chart":               {"web/format"},
	"web/diff":                {"web/format"},
	"web/format":              {},
	"web/pagetest":            {"limiter", protoTree, "web/page"},
	"web/internal/copyassets": {},
	"web/e2e/seed":            {everything}, // a program of the browser tests

	"store":           {"limiter", "policy"},
	"store/ledger":    {"store"},
	"store/etcd":      {"store"},
	"store/storetest": {"limiter", "store", "store/ledger"},

	"policy":            {"limiter"},
	"policy/alert":      {},
	"policy/backtest":   {"limiter", "policy"},
	"policy/guard":      {"limiter", "policy"},
	"policy/verdict":    {},
	"policy/policyfile": {"limiter", "limiter/yamlfile", "policy"},

	"policy/backtest/internal/measure": {"policy", "policy/backtest"}, // a program of task rlc-tables

	"limiter":            {},
	"limiter/law":        {"limiter"},
	"limiter/limitsfile": {"limiter", "limiter/yamlfile"},
	"limiter/yamlfile":   {"limiter"},
	"limiter/httplimit":  {"limiter"},

	"proto/grl/v1":              {},
	"proto/grl/v1/grlv1connect": {"proto/grl/v1"},
	"proto/wire":                {"limiter", "limiter/law", protoTree},
	"proto/uplink":              {"limiter", "limiter/law", protoTree},
	"proto/statefile":           {"limiter", "limiter/law", protoTree},
	"proto/downlink":            {"limiter", protoTree},
	"proto/access":              {protoTree},
	"proto/tlsfiles":            {"proto/access"},
}

// protoTree stands for all packages below proto.
const protoTree = "proto/…"

// standardOnly are the packages that people embed: no dependency comes along.
var standardOnly = []string{"limiter", "limiter/law"}

// commandLine are the packages that may import cobra, and reader the one that
// may import viper.
var (
	commandLine = []string{".", "roles", "roles/command"}
	reader      = "roles"
)

func TestImports(t *testing.T) {
	for pkg, imports := range importsOf(t) {
		allowed, listed := mayImport[pkg]
		if !listed {
			t.Errorf("package %s is not in the table of mayImport", pkg)
		}
		for _, path := range imports {
			dep, ours := strings.CutPrefix(path, module+"/")
			switch {
			case ours && !may(allowed, dep):
				t.Errorf("%s imports %s; may import only %v", pkg, dep, allowed)
			case !ours && slices.Contains(standardOnly, pkg) && strings.Contains(path, "."):
				t.Errorf("%s imports %s; may import the standard library only", pkg, path)
			case path == "github.com/spf13/cobra" && !slices.Contains(commandLine, pkg):
				t.Errorf("%s imports cobra; only %v may", pkg, commandLine)
			case path == "github.com/spf13/viper" && pkg != reader:
				t.Errorf("%s imports viper; only %s may", pkg, reader)
			}
		}
	}
}

func may(allowed []string, dep string) bool {
	for _, a := range allowed {
		if a == everything || a == dep || a == protoTree && strings.HasPrefix(dep, "proto/") {
			return true
		}
	}
	return false
}

// importsOf maps each of our packages to what it imports, tests left out.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list ./...: %v", err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg, err := filepath.Rel(module, fields[0])
		if err != nil {
			t.Fatal(err)
		}
		imports[pkg] = fields[1:]
	}
	return imports
}
