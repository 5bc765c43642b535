package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"grl/proto/access"
)

// files are the proto files of the public API, in the order of the document.
// tree.proto is what nodes say to each other; messages of it are shown where
// the API uses them.
var files = []string{"config.proto", "incident.proto", "view.proto", "audit.proto", "access.proto", "rlc.proto", "tree.proto"}

const internalService = "TreeService"

const head = `# API

The controller answers these procedures at its address, in Connect, gRPC and gRPC-Web. This file is written from the comments of the files in ` + "`proto/grl/v1`" + ` by ` + "`go generate ./roles/controller/api`" + `; do not edit it.

- **JSON** works with anything that can POST: to ` + "`/grl.v1.SERVICE/PROCEDURE`" + ` with ` + "`Content-Type: application/json`" + `. Fields are in lowerCamelCase (snake_case is taken too), 64-bit numbers are strings, bytes are base64, and what has its zero value is left out. Fields that are not known are refused, so a misspelt dryRun changes nothing.
- **Reading procedures** may also be asked by GET, as Connect does.
- **Who calls** is said by ` + "`Authorization: Bearer TOKEN`" + `, an API token or a session. While there is no account, and the controller listens on loopback, everyone is admin. [access.md](access.md) has more.
- **Errors** have a code and a text. A change that is refused carries a [Refusal](#refusal): ` + "`invalid_argument`" + ` with all faults and their places, ` + "`failed_precondition`" + ` with the guard rails that need force, or with the rollout that is in the way, ` + "`aborted`" + ` with the conflicts, ` + "`permission_denied`" + `, ` + "`not_found`" + `. ` + "`unavailable`" + ` says that the store cannot be reached, or that a change is saved and not active here yet: ask for the present revision before trying again. ` + "`resource_exhausted`" + ` says that the store is full, or a bound reached.
- **A request** has at most 1 MiB, that of Apply and of ApplyRepository 64 MiB, of RecordResults 4 MiB, of ReadHistory and GetMemory 16 MiB.
- **Health and reflection** are at the same address: ` + "`grpc.health.v1.Health`" + `, and the reflection that grpcurl and buf curl ask for, so they need no proto files.

`

// example is a call that the document shows.
type example struct{ procedure, body string }

// examples are shown with curl.
var examples = []example{
	{"ConfigService/Apply", `{"files": [{"name": "payments.yaml", "data": "c2VydmljZTogcGF5bWVudHMKYnVja2V0czoKICAtIHtuYW1lOiBhbGwsIGxpbWl0OiB7cnBzOiA1MDB9LCBiZWhhdmlvcjogYWxsb3d9Cg=="}], "reason": "first limits", "dryRun": true}`},
	{"ConfigService/Rollback", `{"revision": "12", "reason": "drops at checkout"}`},
	{"ConfigService/Promote", `{"bucket": "payments/all", "reason": "a quiet week in shadow"}`},
	{"ConfigService/GetConfiguration", `{"service": "payments"}`},
	{"ConfigService/ListRevisions", `{"pageSize": 10}`},
	{"IncidentService/PlaceCap", `{"service": "payments", "caller": "checkout", "rps": 200, "durationMs": "1800000", "reason": "incident 7", "dryRun": true}`},
	{"IncidentService/LiftCap", `{"id": "1", "reason": "over"}`},
	{"IncidentService/ListCaps", `{}`},
	{"IncidentService/Disable", `{"service": "payments", "reason": "a wrong limit"}`},
	{"AuditService/ListAudit", `{"subject": "payments", "pageSize": 20}`},
	{"AuditService/VerifyAudit", `{}`},
	{"ViewService/ListBuckets", `{"service": "payments"}`},
	{"ViewService/GetFleet", `{}`},
	{"AccessService/WhoAmI", `{}`},
	{"PolicyService/ApplyPolicies", `{"files": [{"name": "nightly.yaml", "data": "bmFtZTogbmlnaHRseQpraW5kOiBwZWFrCm1hdGNoOiB7c2VydmljZTogcGF5bWVudHN9Cg=="}], "reason": "first policy", "dryRun": true}`},
	{"PolicyService/GetPolicies", `{}`},
	{"RLCService/RequestRun", `{"service": "payments", "dryRun": true}`},
	{"RLCService/ListRuns", `{"pageSize": 10}`},
	{"RLCService/GetRun", `{"id": "7", "outcome": "RUN_OUTCOME_PROPOSED"}`},
	{"RLCService/DecideProposals", `{"run": "7", "buckets": ["payments/web"], "approve": true, "reason": "as it grows"}`},
	{"RLCService/GetConfigurator", `{}`},
}

func render(dir string) ([]byte, error) {
	proto, err := read(dir, files...)
	if err != nil {
		return nil, err
	}
	d := document{proto: proto}
	d.WriteString(head)
	for _, s := range proto.services {
		if s.name != internalService {
			d.service(s)
		}
	}
	d.shared()
	return append(bytes.TrimRight(d.Bytes(), "\n"), '\n'), d.err
}

// document gathers the text.
type document struct {
	bytes.Buffer
	proto *file
	shown []string // messages that have been linked to
	err   error
}

func (d *document) service(s service) {
	fmt.Fprintf(d, "## %s\n\n%s\n\n", s.name, paragraphs(s.comment))
	for _, p := range s.procedures {
		path := "/grl.v1." + s.name + "/" + p.name
		fmt.Fprintf(d, "### %s\n\n", p.name)
		if p.comment != "" {
			fmt.Fprintf(d, "%s\n\n", paragraphs(p.comment))
		}
		fmt.Fprintf(d, "`POST %s`, %s.\n\n", path, d.who(path))
		d.fields("Request", p.request)
		d.fields("Response", p.response)
		for _, e := range examples {
			if e.procedure == s.name+"/"+p.name {
				fmt.Fprintf(d, "```sh\ncurl -s -H 'Content-Type: application/json' -H \"Authorization: Bearer $GRL_TOKEN\" \\\n  http://127.0.0.1:7070%s \\\n  -d '%s'\n```\n\n", path, e.body)
			}
		}
	}
}

// who says who may call a procedure.
func (d *document) who(path string) string {
	rule, ok := access.RuleOf(path)
	switch {
	case !ok:
		d.err = fmt.Errorf("nobody may call %s: it is not in the table of access", path)
		return ""
	case rule.Anyone:
		return "anyone"
	default:
		who := "for " + rule.People.String() + "s" + map[bool]string{true: " and above"}[rule.People != access.Admin]
		for _, role := range rule.Nodes[access.Controller] {
			who += ", and for a " + role
		}
		return who
	}
}

// fields writes what a request or a response has.
func (d *document) fields(title, name string) {
	m := d.proto.messages[name]
	if m == nil {
		d.err = fmt.Errorf("there is no message %s", name)
		return
	}
	if len(m.fields) == 0 {
		fmt.Fprintf(d, "%s: empty.\n\n", title)
		return
	}
	fmt.Fprintf(d, "| %s | type | |\n| --- | --- | --- |\n", strings.ToLower(title))
	d.rows(m)
}

func (d *document) rows(m *message) {
	for _, f := range m.fields {
		comment := strings.ReplaceAll(f.comment, "\n", " ")
		if f.oneof != "" {
			comment = strings.TrimSpace(comment + " One of the " + f.oneof + " fields.")
		}
		fmt.Fprintf(d, "| `%s` | %s | %s |\n", f.name, d.kind(f.kind), strings.ReplaceAll(comment, "|", "\\|"))
	}
	d.WriteByte('\n')
}

// kind links to a message, and remembers that it must be shown.
func (d *document) kind(kind string) string {
	label, name := "", kind
	if i := strings.LastIndexByte(kind, ' '); i >= 0 && !strings.HasPrefix(kind, "map<") {
		label, name = kind[:i+1], kind[i+1:]
	}
	if d.proto.messages[name] == nil {
		return kind
	}
	if !slices.Contains(d.shown, name) {
		d.shown = append(d.shown, name)
	}
	return fmt.Sprintf("%s[%s](#%s)", label, name, strings.ToLower(strings.ReplaceAll(name, ".", "")))
}

// shared writes the messages that were linked to, and those that these link to.
func (d *document) shared() {
	d.WriteString("## Messages\n\n")
	d.kind("Refusal")
	for i := 0; i < len(d.shown); i++ { // rows adds to it
		m := d.proto.messages[d.shown[i]]
		fmt.Fprintf(d, "### %s\n\n", m.name)
		if m.comment != "" {
			fmt.Fprintf(d, "%s\n\n", paragraphs(m.comment))
		}
		if m.enum {
			d.values(m)
			continue
		}
		d.WriteString("| field | type | |\n| --- | --- | --- |\n")
		d.rows(m)
	}
}

func (d *document) values(m *message) {
	d.WriteString("| value | |\n| --- | --- |\n")
	for _, f := range m.fields {
		fmt.Fprintf(d, "| `%s` | %s |\n", f.name, strings.ReplaceAll(f.comment, "\n", " "))
	}
	d.WriteByte('\n')
}

// paragraphs joins the lines of a comment; an empty one ends a paragraph.
func paragraphs(comment string) string {
	var out []string
	for _, p := range strings.Split(comment, "\n\n") {
		out = append(out, strings.ReplaceAll(p, "\n", " "))
	}
	return strings.Join(out, "\n\n")
}
