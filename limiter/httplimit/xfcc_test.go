package httplimit

import (
	"strings"
	"testing"
)

func TestLastForwardedURI(t *testing.T) {
	tests := []struct {
		name, header string
		want         string // "": refused
	}{
		{"Envoy's own example", `By=http://frontend.lyft.com;Hash=468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688;Subject="/C=US/ST=CA/L=San Francisco/OU=Lyft/CN=Test Client";URI=http://testclient.lyft.com`, "http://testclient.lyft.com"},
		{"empty subject", `By=spiffe://a/b;Hash=0f;Subject="";URI=spiffe://a/c`, "spiffe://a/c"},
		{"quoted URI", `URI="spiffe://a/c"`, "spiffe://a/c"},
		{"escaped quote", `Subject="CN=\"x\",URI=spiffe://a/admin";URI=spiffe://a/c`, "spiffe://a/c"},
		{"escaped in URI", `URI="spiffe://a/\"c"`, `spiffe://a/"c`},
		{"any case", `uri=spiffe://a/c`, "spiffe://a/c"},
		{"two elements", `URI=spiffe://a/b,URI=spiffe://a/c`, "spiffe://a/c"},
		{"space after the comma", `URI=spiffe://a/b, URI=spiffe://a/c`, "spiffe://a/c"},
		{"comma in quotes", `Subject="CN=x,URI=spiffe://a/admin";URI=spiffe://a/c`, "spiffe://a/c"},
		{"DNS beside it", `URI=spiffe://a/c;DNS=a.example;DNS=b.example`, "spiffe://a/c"},
		{"empty", ``, ""},
		{"no URI", `By=spiffe://a/b;Hash=0f`, ""},
		{"empty URI", `URI=`, ""},
		{"two URIs", `URI=spiffe://a/b;URI=spiffe://a/c`, ""},
		{"open quote", `URI="spiffe://a/c`, ""},
		{"open quote swallows the proxy's element", `Subject=",By=spiffe://a/b;URI=spiffe://a/c`, ""},
		{"text after the quote", `Subject="a"b;URI=spiffe://a/c`, ""},
		{"quote inside a bare value", `URI=spiffe://a/"c`, ""},
		{"equals sign in a bare value", `Subject=CN=x;URI=spiffe://a/c`, ""},
		{"space in a bare value", `URI=spiffe://a/c d`, ""},
		{"no key", `=x;URI=spiffe://a/c`, ""},
		{"key is no word", `UR I=spiffe://a/c`, ""},
		{"no equals sign", `URI`, ""},
		{"ends in a semicolon", `URI=spiffe://a/c;`, ""},
		{"ends in a comma", `URI=spiffe://a/c,`, ""},
		{"ends in a backslash", `URI="spiffe://a/c\`, ""},
		{"malformed first element", `x,URI=spiffe://a/c`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := lastForwardedURI(tt.header)
			if ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("lastForwardedURI(%s) = %q, %v, want %q", tt.header, got, ok, tt.want)
			}
		})
	}
}

func FuzzForwardedURI(f *testing.F) {
	f.Add(`By=spiffe://a/b;Hash=0f;Subject="CN=x, O=\"y\"";URI=spiffe://a/c`, `a"b\c`)
	f.Add(`URI="spiffe://a/c\"`, ``)
	f.Add(`k=",`, `,;="`)
	f.Fuzz(func(t *testing.T, header, value string) {
		if uri, ok := lastForwardedURI(header); ok && uri == "" {
			t.Fatalf("%q: accepted without a URI", header)
		}
		// Whatever a client sent before it, what a proxy appends is what is
		// read, or nothing is.
		const appended = "spiffe://a/c"
		if uri, ok := lastForwardedURI(header + ",By=x;URI=" + appended); ok && uri != appended {
			t.Fatalf("%q before a proxy's element: URI %q, want %q", header, uri, appended)
		}
		// Quoting carries any value, and hides what is in it.
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		uri, ok := lastForwardedURI("Subject=" + quoted + ";URI=" + appended)
		if !ok || uri != appended {
			t.Fatalf("subject %q: URI %q, %v", value, uri, ok)
		}
		if uri, ok = lastForwardedURI("URI=" + quoted); ok != (value != "") || ok && uri != value {
			t.Fatalf("quoted URI %q: %q, %v", value, uri, ok)
		}
	})
}
