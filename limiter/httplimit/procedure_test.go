package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"grl/limiter/httplimit"
)

var routes = []string{
	"GET /v1/charges/{id}",
	"POST /v1/charges",
	"/v1/any/{id}",
	"GET /files/{path...}",
	"/tree/",
	"GET pay.example.com/host/{id}",
	"PROPFIND /dav/{id}",
}

func TestProcedure(t *testing.T) {
	tests := []struct {
		name, method, target string
		header               http.Header
		want                 string
	}{
		{name: "grpc", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/grpc"}}, want: "payments.v1.Charges/Create"},
		{name: "grpc+proto", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/grpc+proto"}}, want: "payments.v1.Charges/Create"},
		{name: "grpc-web", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/grpc-web+proto"}}, want: "payments.v1.Charges/Create"},
		{name: "grpc-web-text", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/grpc-web-text; charset=utf-8"}}, want: "payments.v1.Charges/Create"},
		{name: "connect streaming", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/connect+json"}}, want: "payments.v1.Charges/Create"},
		{name: "connect unary", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/proto"}, "Connect-Protocol-Version": {"1"}}, want: "payments.v1.Charges/Create"},
		{name: "connect unary JSON", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Connect-Protocol-Version": {"1"}}, want: "payments.v1.Charges/Create"},
		{name: "connect with a prefix", method: "POST", target: "/api/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/connect+proto"}}, want: "payments.v1.Charges/Create"},
		{name: "connect GET", method: "GET", target: "/payments.v1.Charges/Get?message=e30&encoding=json&connect=v1", want: "payments.v1.Charges/Get"},
		{name: "connect GET only as a whole parameter", method: "GET", target: "/payments.v1.Charges/Get?x=connect=v1", want: "GET /{other}"},
		{name: "connect without its header", method: "POST", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/json"}}, want: "payments.v1.Charges/Create"},
		{name: "JSON to a service without a package", method: "POST", target: "/v2/payments", header: http.Header{"Content-Type": {"application/json"}}, want: "POST /{other}"},
		{name: "JSON to a longer path", method: "POST", target: "/a.B/c/d", header: http.Header{"Content-Type": {"application/json"}}, want: "POST /{other}"},
		{name: "JSON got, not posted", method: "GET", target: "/a.B/c", header: http.Header{"Content-Type": {"application/json"}}, want: "GET /{other}"},
		{name: "another type with a like name", method: "POST", target: "/a/b", header: http.Header{"Content-Type": {"application/grpcx"}}, want: "POST /{other}"},
		{name: "grpc is a POST", method: "GET", target: "/payments.v1.Charges/Create", header: http.Header{"Content-Type": {"application/grpc"}}, want: "GET /{other}"},
		{name: "grpc with one segment", method: "POST", target: "/Create", header: http.Header{"Content-Type": {"application/grpc"}}, want: "POST /{other}"},
		{name: "grpc with an empty method", method: "POST", target: "/payments.v1.Charges/", header: http.Header{"Content-Type": {"application/grpc"}}, want: "POST /{other}"},
		{name: "grpc with an empty service", method: "POST", target: "//Create", header: http.Header{"Content-Type": {"application/grpc"}}, want: "POST /{other}"},
		{name: "grpc with strange bytes", method: "POST", target: "/a%00b/c%20d", header: http.Header{"Content-Type": {"application/grpc"}}, want: "POST /{other}"},
		{name: "grpc, case is kept", method: "POST", target: "/Pay/create", header: http.Header{"Content-Type": {"application/grpc"}}, want: "Pay/create"},
		{name: "YARPC", method: "POST", target: "/", header: http.Header{"Rpc-Procedure": {"Charges::create"}}, want: "Charges/create"},
		{name: "YARPC before routes", method: "GET", target: "/v1/charges/7", header: http.Header{"Rpc-Procedure": {"Charges::get"}}, want: "Charges/get"},
		{name: "YARPC without a method", method: "POST", target: "/", header: http.Header{"Rpc-Procedure": {"Charges::"}}, want: "POST /{other}"},
		{name: "YARPC too long", method: "POST", target: "/", header: http.Header{"Rpc-Procedure": {strings.Repeat("a", 256) + "::b"}}, want: "POST /{other}"},
		{name: "YARPC in another form", method: "POST", target: "/", header: http.Header{"Rpc-Procedure": {"Charges.create"}}, want: "POST /{other}"},
		{name: "route", method: "GET", target: "/v1/charges/ch_123", want: "GET /v1/charges/{id}"},
		{name: "HEAD is what GET is", method: "HEAD", target: "/v1/charges/ch_123", want: "GET /v1/charges/{id}"},
		{name: "route of another method", method: "DELETE", target: "/v1/charges/ch_123", want: "DELETE /{other}"},
		{name: "route of any method", method: "PUT", target: "/v1/any/7", want: "PUT /v1/any/{id}"},
		{name: "route of any method, unknown one", method: "BREW", target: "/v1/any/7", want: "OTHER /v1/any/{id}"},
		{name: "wildcard for the rest", method: "GET", target: "/files/a/b/c", want: "GET /files/{path...}"},
		{name: "trailing slash missing", method: "GET", target: "/tree", want: "GET /tree/"},
		{name: "unclean path", method: "GET", target: "/v1//charges/./7", want: "GET /v1/charges/{id}"},
		{name: "encoded slash stays in its segment", method: "GET", target: "/v1/charges/a%2Fb", want: "GET /v1/charges/{id}"},
		{name: "route with a host", method: "GET", target: "http://pay.example.com/host/7", want: "GET pay.example.com/host/{id}"},
		{name: "route of a method of its own", method: "PROPFIND", target: "/dav/7", want: "PROPFIND /dav/{id}"},
		{name: "no route", method: "GET", target: "/secret/user/42", want: "GET /{other}"},
		{name: "no route, unknown method", method: "X-ATTACK", target: "/a", want: "OTHER /{other}"},
		{name: "lower case is another method", method: "get", target: "/v1/charges/1", want: "OTHER /{other}"},
		{name: "CONNECT", method: "CONNECT", target: "/tree", want: "CONNECT /{other}"},
		{name: "PATCH", method: "PATCH", target: "/a", want: "PATCH /{other}"},
	}
	compiled := httplimit.NewRoutes(routes)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{Method: tt.method, Header: tt.header, Host: "localhost"}
			var err error
			if r.URL, err = url.Parse(tt.target); err != nil {
				t.Fatal(err)
			}
			if r.URL.Host != "" {
				r.Host = r.URL.Host
			}
			if got := httplimit.Procedure(r, compiled); got != tt.want {
				t.Errorf("Procedure = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBadRoutesAreLeftOut(t *testing.T) {
	compiled := httplimit.NewRoutes([]string{"GET /a/{id}", "GET /a/{", "nonsense", "GET /a/{other}", "", "GET /b"})
	for target, want := range map[string]string{"/a/1": "GET /a/{id}", "/b": "GET /b", "/c": "GET /{other}"} {
		if got := httplimit.Procedure(httptest.NewRequest("GET", target, nil), compiled); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

func TestProcedureAllocatesNothingForAnRPC(t *testing.T) {
	r := httptest.NewRequest("POST", "/payments.v1.Charges/Create", nil)
	r.Header.Set("Content-Type", "application/grpc+proto")
	if n := testing.AllocsPerRun(100, func() { httplimit.Procedure(r, nil) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzProcedure checks that a name is either one of a closed set or that of an
// RPC in the characters a name may have: a raw path is never one.
func FuzzProcedure(f *testing.F) {
	f.Add("GET", "/v1/charges/7", "", "", "")
	f.Add("POST", "/payments.v1.Charges/Create", "application/grpc", "", "")
	f.Add("POST", "/a/b", "application/json", "1", "")
	f.Add("POST", "//a//b/../c", "application/grpc-web-text", "", "A::b")
	f.Add("CONNECT", "/tree", "", "", "")
	compiled := httplimit.NewRoutes(routes)
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "OTHER"}
	rpc := regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,256}$`)
	f.Fuzz(func(t *testing.T, method, path, contentType, version, yarpc string) {
		r := &http.Request{Method: method, Host: "localhost", URL: &url.URL{Path: path}, Header: http.Header{
			"Content-Type": {contentType}, "Rpc-Procedure": {yarpc},
		}}
		if version != "" {
			r.Header["Connect-Protocol-Version"] = []string{version}
		}
		got := httplimit.Procedure(r, compiled)
		verb, rest, isRoute := strings.Cut(got, " ")
		switch {
		case !isRoute:
			if !rpc.MatchString(got) || !strings.Contains(got, "/") {
				t.Fatalf("Procedure = %q is no RPC's name", got)
			}
			if contentType == "" && yarpc == "" {
				t.Fatalf("Procedure = %q for a request that is no RPC", got)
			}
		case slices.Contains(routes, got):
		case slices.Contains(methods, verb) && (rest == "/{other}" || slices.Contains(routes, rest)):
		default:
			t.Fatalf("Procedure = %q is outside the closed set", got)
		}
	})
}
