package desktest

import (
	"fmt"
	"strings"
)

// Call is a call of the API, in JSON, that must be refused.
type Call struct {
	Name      string
	Procedure string // service/procedure, of grl.v1
	Body      string
	// NotFound says that it is refused because there is no such thing, else
	// because of what it says.
	NotFound bool
}

// BadCalls returns calls that change the configuration or what holds beside it,
// each with one fault.
func BadCalls() []Call {
	var calls []Call
	add := func(procedure string, bodies ...string) {
		for i, body := range bodies {
			calls = append(calls, Call{Name: fmt.Sprintf("%s %d: %.60s", procedure, i, body), Procedure: procedure, Body: body})
		}
	}
	for _, procedure := range []string{
		"ConfigService/Apply", "ConfigService/Rollback", "ConfigService/Promote", "ConfigService/FinishRollout",
		"IncidentService/PlaceCap", "IncidentService/LiftCap", "IncidentService/Disable", "IncidentService/Enable",
		"PolicyService/ApplyPolicies", "PolicyService/DeletePolicy", "PolicyService/RollbackPolicies", "RLCService/DecideProposals",
	} {
		add(procedure, malformed...)
	}
	long, control := strings.Repeat("a", 1025), `a\u0007b`
	add("ConfigService/Apply",
		`{}`, `{"files": []}`, `{"files": [{}]}`, `{"files": [{"name": "a"}]}`, `{"files": [{"name": "a", "data": "!"}]}`, `{"files": [{"data": "c2VydmljZTogYQo="}]}`,
		apply(`"dryrun": true`), apply(`"base": "99"`), apply(`"base": -1`), apply(`"base": 1.5`), apply(`"base": "18446744073709551616"`),
		apply(`"now": true`), apply(`"force": true`), apply(`"force": "yes", "reason": "a"`), apply(`"reason": "`+long+`"`), apply(`"reason": "`+control+`"`),
	)
	add("ConfigService/Rollback",
		`{"revision": "1"}`, `{"revision": -1, "reason": "a"}`, `{"revision": "a", "reason": "a"}`, `{"revision": 1e30, "reason": "a"}`,
		`{"revision": "1", "reason": "`+long+`"}`, `{"revision": "1", "reason": "`+control+`"}`, `{"revision": "1", "reason": 5}`,
	)
	add("ConfigService/Promote", `{}`, `{"bucket": ""}`, `{"bucket": "payments"}`, `{"bucket": "/"}`, `{"bucket": "payments/"}`, `{"bucket": "/web"}`, `{"bucket": 5}`,
		`{"bucket": "payments/web", "force": true}`, `{"bucket": "payments/web", "reason": "`+long+`"}`, `{"bucket": "payments/web"}`)
	add("ConfigService/FinishRollout", `{}`, `{"reason": ""}`, `{"reason": "`+long+`"}`, `{"reason": "`+control+`"}`)
	add("IncidentService/PlaceCap", badCaps(long, control)...)
	add("IncidentService/Disable", `{}`, `{"reason": "a"}`, `{"service": "payments"}`, `{"service": "payments", "all": true, "reason": "a"}`, `{"all": true}`,
		`{"service": "payments", "reason": "`+long+`"}`, `{"service": "`+long+`", "reason": "a"}`)
	add("IncidentService/Enable", `{}`, `{"service": "payments", "all": true}`, `{"all": true, "reason": "`+control+`"}`, `{"service": "`+long+`"}`)
	add("IncidentService/LiftCap", `{"id": "`+long+`"}`, `{"id": "c1", "reason": "`+control+`"}`)
	add("PolicyService/ApplyPolicies",
		`{}`, `{"files": [{}]}`, `{"files": [{"name": "a"}]}`, `{"files": [{"data": "bmFtZTogYQo="}]}`, `{"files": [{"name": "a", "data": "bmFtZTogYQo="}], "base": "99"}`,
		`{"files": [{"name": "a", "data": "c2VydmljZTogYQo="}]}`, `{"files": [{"name": "a", "data": "bmFtZTogYQo="}], "reason": "`+long+`"}`,
	)
	add("PolicyService/DeletePolicy", `{"name": "`+long+`"}`, `{"name": "a", "reason": "`+control+`"}`)
	add("PolicyService/RollbackPolicies", `{}`, `{"revision": "1"}`, `{"reason": "a"}`, `{"revision": "1", "reason": "`+long+`"}`)
	add("RLCService/RequestRun", `{"policy": "a", "service": "payments"}`, `{"service": "`+long+`"}`, `{"policy": "`+long+`"}`, `{"dryrun": true}`)
	add("RLCService/DecideProposals", `{"run": "1", "force": true}`, `{"run": "1", "reason": "`+long+`"}`, `{"run": "1", "reason": "`+control+`"}`, `{"run": -1}`)
	add("RLCService/ListRuns", `{"pageSize": 201}`, `{"requestId": "`+long+`"}`)
	add("RLCService/GetRun", `{"id": "1", "pageSize": 10001}`, `{"id": "1", "bucket": "`+long+`"}`, `{"id": "1", "outcome": "RUN_OUTCOME_NONE"}`)
	for _, c := range []struct{ procedure, body string }{
		{"PolicyService/DeletePolicy", `{}`},
		{"PolicyService/DeletePolicy", `{"name": "none"}`},
		{"PolicyService/RollbackPolicies", `{"revision": "99", "reason": "a"}`},
		{"RLCService/RequestRun", `{"service": "none"}`},
		{"RLCService/RequestRun", `{"policy": "none"}`},
		{"RLCService/DecideProposals", `{"run": "99", "approve": true}`},
		{"RLCService/GetRun", `{"id": "99"}`},
		{"ConfigService/Rollback", `{"revision": "99", "reason": "a"}`},
		{"ConfigService/Rollback", `{"revision": "18446744073709551615", "reason": "a"}`},
		{"ConfigService/Promote", `{"bucket": "payments/none"}`},
		{"ConfigService/Promote", `{"bucket": "none/web"}`},
		{"ConfigService/Promote", `{"bucket": "../../etc/passwd"}`},
		{"ConfigService/FinishRollout", `{"reason": "a"}`},
		{"IncidentService/LiftCap", `{}`},
		{"IncidentService/LiftCap", `{"id": "none"}`},
		{"IncidentService/LiftCap", `{"id": "'; DROP TABLE records; --"}`},
		{"IncidentService/Disable", `{"service": "paymnets", "reason": "a"}`},
		{"IncidentService/Enable", `{"service": "paymnets"}`},
	} {
		calls = append(calls, Call{Name: c.procedure + ": " + c.body, Procedure: c.procedure, Body: c.body, NotFound: true})
	}
	return calls
}

// malformed is no request of anything.
var malformed = []string{
	"", " ", "null", "5", `"a"`, "[]", "{", "{]", "{}{}", `{"a`, `{'reason': 'a'}`, `{reason: "a"}`, "service: payments\n", "<xml/>",
	`{"unknown": 1}`, `{"reason": "a", "reason": "b"}`, "{\"reason\": \"\xff\"}", "{\"reason\": \"a\x00\"}", `{"reason": "\ud800"}`,
	`{"reason": {"a": ` + strings.Repeat("[", 20_000) + "}}",
}

// apply is a body with a file that holds and a field that does not.
func apply(field string) string {
	return `{"files": [{"name": "a", "data": "c2VydmljZTogYQo="}], ` + field + `}`
}

func badCaps(long, control string) []string {
	body := func(fields string) string { return `{"service": "payments", "caller": "web", ` + fields + `}` }
	const rest = `"durationMs": "60000", "reason": "a"`
	bodies := []string{
		`{}`, body(rest), body(`"block": false, ` + rest), body(`"rps": 5, "block": true, ` + rest), body(`"rps": 5, "reason": "a"`), body(`"rps": 5, "durationMs": "60000"`),
		body(`"rps": 5, "durationMs": "60000", "reason": "` + long + `"`), body(`"rps": 5, "durationMs": "60000", "reason": "` + control + `"`),
		`{"service": "", "caller": "web", "rps": 5, ` + rest + `}`,
	}
	for _, rps := range []string{"0", "-1", "0.0009", "1000000001", "1e308", `"NaN"`, `"Infinity"`, `"-Infinity"`, `"a"`, "true", "[5]", "1e999"} {
		bodies = append(bodies, body(`"rps": `+rps+`, `+rest))
	}
	for _, ms := range []string{"0", "-1", "999", "86400001", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5", `"30m"`, "null"} {
		bodies = append(bodies, body(`"rps": 5, "reason": "a", "durationMs": `+ms))
	}
	for _, name := range []string{
		"**", "*a", "a*b", "<script>", "a|b", `a\\b`, `a\"b`, `a\u0000`, `a\u202eb`, "_own", "_cap-1", "😀", "'; DROP TABLE records; --", strings.Repeat("a", 257),
	} {
		bodies = append(bodies, `{"service": "payments", "caller": "`+name+`", "rps": 5, `+rest+`}`, `{"service": "`+name+`", "caller": "web", "rps": 5, `+rest+`}`)
	}
	return append(bodies, `{"service": "payments", "procedure": "a**", "rps": 5, `+rest+`}`, `{"service": "payments", "procedure": "/v1/pay|", "rps": 5, `+rest+`}`)
}
