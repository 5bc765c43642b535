package remote_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/command/remote"
)

// config answers Apply with an error, and tells who called.
type config struct {
	grlv1connect.UnimplementedConfigServiceHandler
	err  error
	seen http.Header
}

func (c *config) Apply(ctx context.Context, _ *grlv1.ApplyRequest) (*grlv1.ApplyResponse, error) {
	info, _ := connect.CallInfoForHandlerContext(ctx)
	c.seen = info.RequestHeader()
	return &grlv1.ApplyResponse{}, c.err
}

// handler serves c, and /healthz as every control port does.
func (c *config) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(grlv1connect.NewConfigServiceHandler(c))
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// environment is the variables of a command.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// apply calls Apply with these flags and variables.
func apply(t *testing.T, f remote.Flags, e environment) error {
	t.Helper()
	conn, err := f.Dial(t.Context(), e.get)
	if err != nil {
		return err
	}
	_, err = conn.Config.Apply(t.Context(), &grlv1.ApplyRequest{})
	return err
}

func refusing(code connect.Code, text string, r *grlv1.Refusal) error {
	err := connect.NewError(code, errors.New(text))
	if r != nil {
		d, _ := connect.NewErrorDetail(r) // a message of ours can be marshalled
		err.AddDetail(d)
	}
	return err
}

func TestErrorsSayWhatToDo(t *testing.T) {
	revision := &grlv1.Revision{Number: 5, Author: "ann", Reason: "sale", AtMs: 1_800_000_000_000}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"problems", refusing(connect.CodeInvalidArgument, "2 problems", &grlv1.Refusal{Problems: []*grlv1.Problem{
			{Where: "limits/pay.yaml", Line: 3, Column: 9, Text: "unknown key"}, {Where: "reason", Text: "too long"}, {Text: "e\x1b[2Jmpty"},
		}}), "refused, nothing was changed\nlimits/pay.yaml:3:9: unknown key\nreason: too long\ne\ufffd[2Jmpty"},
		{"guard rails", refusing(connect.CodeFailedPrecondition, "refused", &grlv1.Refusal{Findings: []*grlv1.Finding{
			{Bucket: "pay/all", Text: "below half of the peak", NeedsForce: true}, {Text: "cannot tell"},
		}}), "refused, nothing was changed\nneeds --force and --reason: pay/all: below half of the peak\nnote: cannot tell"},
		{"conflict", refusing(connect.CodeAborted, "1 conflict", &grlv1.Refusal{Conflicts: []*grlv1.Conflict{
			{Bucket: "pay/all", Base: 3, Revision: revision, BaseText: "limit: {rps: 5}\n", TheirText: "limit: {rps: 6}\n"},
		}}), `refused, nothing was changed
conflict: pay/all was changed after r3 by r5 (ann, 2027-01-15 08:00:00Z: sale)
  in r3, which this change was made from:
    limit: {rps: 5}
  in r5:
    limit: {rps: 6}
  as asked for:
    (not there)
take over into the files what shall stay of it, look at grl diff, and apply with --base 5: all in which they differ from r5 is then meant`},
		{"not signed in", refusing(connect.CodeUnauthenticated, "no token", nil), "no token: sign in with grl login, or give a token with --token-file or GRL_TOKEN"},
		{"not signed in, in the words of the API", refusing(connect.CodeUnauthenticated, "needs viewer: sign in, or send a token", nil), "needs viewer: sign in with grl login, or give a token with --token-file or GRL_TOKEN"},
		{"no rights", refusing(connect.CodePermissionDenied, "ann may not edit orders", nil), "ann may not edit orders"},
		{"store", refusing(connect.CodeUnavailable, "the store is down", nil), "the controller at URL says: the store is down"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer((&config{err: tt.err}).handler())
			defer server.Close()
			err := apply(t, remote.Flags{URLs: []string{server.URL}}, nil)
			if want := strings.ReplaceAll(tt.want, "URL", server.URL); err == nil || err.Error() != want {
				t.Errorf("error\n%v\nwant\n%s", err, want)
			}
			if got, want := remote.Code(err), connect.CodeOf(tt.err); got != want {
				t.Errorf("code %v, want %v", got, want)
			}
		})
	}
}

func TestTLSThatDoesNotFit(t *testing.T) {
	server := httptest.NewTLSServer((&config{}).handler())
	defer server.Close()
	err := apply(t, remote.Flags{URLs: []string{server.URL}}, nil)
	want := "the certificate of the controller at " + server.URL + " is of a CA that is not trusted here: --ca or GRL_CA_FILE names the file with that CA"
	if err == nil || err.Error() != want {
		t.Errorf("unknown CA: error %v, want %s", err, want)
	}
	plain := strings.Replace(server.URL, "https", "http", 1)
	err = apply(t, remote.Flags{URLs: []string{plain}}, nil)
	want = "what is at " + plain + " answers 400 Bad Request: if it speaks TLS, its address begins with https"
	if err == nil || err.Error() != want {
		t.Errorf("plain text: error %v, want %s", err, want)
	}
}

func TestNothingThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err = apply(t, remote.Flags{URLs: []string{free}}, nil)
	want := "cannot reach a controller at " + free + " (connection refused): is it running? --controller or GRL_URL names another one"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }))
	defer other.Close()
	err = apply(t, remote.Flags{URLs: []string{other.URL}}, nil)
	if !remote.NotServed(err) || !strings.Contains(err.Error(), "does not know this call") {
		t.Errorf("error of another server: %v", err)
	}
}

func TestSilentControllerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}}
		began := time.Now()
		conn := remote.Connect(client, "http://controller")
		_, err := conn.Config.Apply(remote.WithTimeout(t.Context(), 3*time.Second), &grlv1.ApplyRequest{})
		if took := time.Since(began); took != 3*time.Second || err == nil ||
			err.Error() != "no answer of the controller at http://controller within 3s: what was asked for may have been done" {
			t.Errorf("after %v: %v", took, err)
		}
		client.CloseIdleConnections()
	})
}

func TestFirstThatAnswers(t *testing.T) {
	var first, second config
	a, b := httptest.NewServer(first.handler()), httptest.NewServer(second.handler())
	defer b.Close()
	e := environment{remote.VariableURL: a.URL + "," + b.URL}
	if err := apply(t, remote.Flags{}, e); err != nil || first.seen == nil || second.seen != nil {
		t.Errorf("%v: called first %v, second %v", err, first.seen != nil, second.seen != nil)
	}
	a.Close()
	if err := apply(t, remote.Flags{}, e); err != nil || second.seen == nil {
		t.Errorf("%v: the second was not called when the first was gone", err)
	}
	b.Close()
	err := apply(t, remote.Flags{}, e)
	if err == nil || !strings.Contains(err.Error(), a.URL) || !strings.Contains(err.Error(), b.URL) {
		t.Errorf("error %v does not name both", err)
	}
}

func TestTokens(t *testing.T) {
	var c config
	server := httptest.NewServer(c.handler())
	defer server.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("grl_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := environment{"XDG_CONFIG_HOME": dir, remote.VariableURL: server.URL}
	if err := remote.SaveSession(home.get, server.URL, "session", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		flags remote.Flags
		more  environment
		want  string
	}{
		{"login", remote.Flags{}, nil, "Bearer session"},
		{"variable with a file", remote.Flags{}, environment{remote.VariableTokenFile: file}, "Bearer grl_file"},
		{"variable", remote.Flags{}, environment{remote.VariableTokenFile: file, remote.VariableToken: "grl_variable"}, "Bearer grl_variable"},
		{"flag", remote.Flags{TokenFile: file}, environment{remote.VariableToken: "grl_variable"}, "Bearer grl_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := environment{}
			for _, from := range []environment{home, tt.more} {
				for k, v := range from {
					e[k] = v
				}
			}
			if err := apply(t, tt.flags, e); err != nil || c.seen.Get("Authorization") != tt.want {
				t.Errorf("%v: sent %q, want %q", err, c.seen.Get("Authorization"), tt.want)
			}
		})
	}
	info, err := os.Stat(filepath.Join(dir, "grl", "sessions.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("sessions %v, %v; want mode 0600", info, err)
	}
	if err := remote.SaveSession(home.get, server.URL, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, remote.Flags{}, home); err != nil || c.seen.Get("Authorization") != "" {
		t.Errorf("%v: sent %q after the logout", err, c.seen.Get("Authorization"))
	}
}

func TestWrongFlags(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("secret words\nof two lines"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flags remote.Flags
		e     environment
		want  string
	}{
		{remote.Flags{URLs: []string{"127.0.0.1:7070"}}, nil, "no URL like"},
		{remote.Flags{URLs: []string{"http://user:secret@host"}}, nil, "no URL like"},
		{remote.Flags{}, environment{remote.VariableURL: ","}, "no controller"},
		{remote.Flags{TokenFile: filepath.Join(dir, "none")}, nil, "no such file"},
		{remote.Flags{TokenFile: bad}, nil, "holds no token"},
		{remote.Flags{}, environment{remote.VariableToken: " "}, "is empty"},
		{remote.Flags{CAFile: bad}, nil, "no certificate"},
	} {
		err := apply(t, tt.flags, tt.e)
		if !errors.Is(err, remote.ErrUsage) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v %v: error %v, want wrong use: %s", tt.flags, tt.e, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret words") {
			t.Errorf("error %q shows what is in the file", err)
		}
	}
}

func TestCertificates(t *testing.T) {
	var c config
	server := httptest.NewUnstartedServer(c.handler())
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f := remote.Flags{URLs: []string{server.URL}}
	if err := apply(t, f, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown certificate: %v", err)
	}
	if err := apply(t, f, environment{remote.VariableCA: ca}); err != nil {
		t.Errorf("certificate of --ca: %v", err)
	}
}
