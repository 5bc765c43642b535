package people

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

// served is the AccessService behind the gate of a controller on loopback.
type served struct {
	*rig
	server *httptest.Server
}

func serve(t *testing.T) *served {
	t.Helper()
	r := newRig(t, nil)
	gate := access.NewGate(access.Options{
		Role: access.Controller, Anonymous: access.Admin, People: r.People, Registry: prometheus.NewRegistry(),
	})
	mux := http.NewServeMux()
	mux.Handle(grlv1connect.NewAccessServiceHandler(r.Service(), connect.WithConditionalHandlerOptions(Bounds)))
	s := &served{rig: r, server: httptest.NewServer(gate.Handler(mux))}
	t.Cleanup(s.server.Close)
	return s
}

// by is a client with a bearer; "": without.
func (s *served) by(bearer string) grlv1connect.AccessServiceClient {
	return grlv1connect.NewAccessServiceClient(s.server.Client(), s.server.URL, connect.WithInterceptors(
		connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
				if bearer != "" {
					q.Header().Set("Authorization", "Bearer "+bearer)
				}
				return next(ctx, q)
			}
		})))
}

func wantRPC(t *testing.T, what string, err error, code connect.Code) {
	t.Helper()
	if connect.CodeOf(err) != code || err == nil {
		t.Errorf("%s: %v, want %v", what, err, code)
	}
}

// TestAccessService goes the way of a new installation, over real HTTP.
func TestAccessService(t *testing.T) {
	s, ctx := serve(t), t.Context()
	anyone := s.by("")
	who, err := anyone.WhoAmI(ctx, &grlv1.WhoAmIRequest{})
	if err != nil || who.GetBy() != "open" || who.GetAccount().GetName() != "local" || who.GetAccount().GetRole() != grlv1.AccountRole_ACCOUNT_ROLE_ADMIN {
		t.Fatalf("before the first account: %v, %v", who, err)
	}
	if _, err := anyone.PutAccount(ctx, &grlv1.PutAccountRequest{
		Account: &grlv1.Account{Name: "root", Role: grlv1.AccountRole_ACCOUNT_ROLE_ADMIN}, Password: rootPassword,
	}); err != nil {
		t.Fatal(err)
	}
	_, err = anyone.WhoAmI(ctx, &grlv1.WhoAmIRequest{})
	wantRPC(t, "at once after it", err, connect.CodeUnauthenticated)
	_, err = anyone.Login(ctx, &grlv1.LoginRequest{Account: "root", Password: "wrong"})
	wantRPC(t, "a wrong password", err, connect.CodeUnauthenticated)
	session, err := anyone.Login(ctx, &grlv1.LoginRequest{Account: "root", Password: rootPassword})
	if err != nil || session.GetExpiresAtMs() == 0 {
		t.Fatalf("login: %v, %v", session, err)
	}
	root := s.by(session.GetSession())
	if _, err := root.PutAccount(ctx, &grlv1.PutAccountRequest{
		Account: &grlv1.Account{Name: "ada", Role: grlv1.AccountRole_ACCOUNT_ROLE_EDITOR, Services: []string{"pay"}}, Password: adaPassword,
	}); err != nil {
		t.Fatal(err)
	}
	made, err := root.CreateToken(ctx, &grlv1.CreateTokenRequest{Name: "ci", Role: grlv1.AccountRole_ACCOUNT_ROLE_EDITOR, Account: "ada", DurationMs: 60_000})
	if err != nil || !strings.HasPrefix(made.GetSecret(), "grl_") || made.GetToken().GetUsedAtMs() != 0 {
		t.Fatalf("token: %v", err)
	}
	token := s.by(made.GetSecret())
	who, err = token.WhoAmI(ctx, &grlv1.WhoAmIRequest{})
	if err != nil || who.GetBy() != "token" || who.GetAccount().GetName() != "ada" || who.GetAccount().GetServices()[0] != "pay" {
		t.Errorf("by the token: %v, %v", who, err)
	}
	for what, call := range map[string]func() error{
		"PutAccount": func() error { _, err := token.PutAccount(ctx, &grlv1.PutAccountRequest{}); return err },
		"DeleteAccount": func() error {
			_, err := token.DeleteAccount(ctx, &grlv1.DeleteAccountRequest{Name: "root"})
			return err
		},
		"CreateToken": func() error {
			_, err := token.CreateToken(ctx, &grlv1.CreateTokenRequest{Name: "more", Role: 1})
			return err
		},
		"RevokeToken": func() error {
			_, err := token.RevokeToken(ctx, &grlv1.RevokeTokenRequest{Id: made.GetToken().GetId()})
			return err
		},
		"EndSession": func() error { _, err := token.EndSession(ctx, &grlv1.EndSessionRequest{Id: "00"}); return err },
	} {
		wantRPC(t, "an editor's token: "+what, call(), connect.CodePermissionDenied)
	}
	if own, err := token.ListAccounts(ctx, &grlv1.ListAccountsRequest{}); err != nil || len(own.GetAccounts()) != 1 || own.GetAccounts()[0].GetName() != "ada" {
		t.Errorf("accounts that an editor's token sees: %v, %v", own, err)
	}
	sessions, err := root.ListSessions(ctx, &grlv1.ListSessionsRequest{})
	if err != nil || len(sessions.GetSessions()) != 1 || sessions.GetSessions()[0].GetFrom() != "127.0.0.1" {
		t.Errorf("sessions: %v, %v", sessions, err)
	}
	if _, err := root.RevokeToken(ctx, &grlv1.RevokeTokenRequest{Id: made.GetToken().GetId()}); err != nil {
		t.Fatal(err)
	}
	_, err = token.WhoAmI(ctx, &grlv1.WhoAmIRequest{})
	wantRPC(t, "a revoked token", err, connect.CodeUnauthenticated)
	if _, err := root.EndSession(ctx, &grlv1.EndSessionRequest{Id: sessions.GetSessions()[0].GetId()}); err != nil {
		t.Fatal(err)
	}
	_, err = root.Logout(ctx, &grlv1.LogoutRequest{})
	wantRPC(t, "a session that was ended", err, connect.CodeUnauthenticated)
}

func TestInputOfAccessService(t *testing.T) {
	s, ctx := serve(t), t.Context()
	anyone := s.by("")
	many := make([]string, MostServices+1)
	for what, call := range map[string]func() error{
		"no account": func() error { _, err := anyone.PutAccount(ctx, &grlv1.PutAccountRequest{}); return err },
		"many services": func() error {
			_, err := anyone.PutAccount(ctx, &grlv1.PutAccountRequest{Account: &grlv1.Account{Name: "a", Role: 2, Services: many}})
			return err
		},
		"an unknown role": func() error {
			_, err := anyone.PutAccount(ctx, &grlv1.PutAccountRequest{Account: &grlv1.Account{Name: "a", Role: 9}, Password: rootPassword})
			return err
		},
		"a negative life": func() error {
			_, err := anyone.CreateToken(ctx, &grlv1.CreateTokenRequest{Name: "a", Role: 1, DurationMs: -1})
			return err
		},
		"an endless life": func() error {
			_, err := anyone.CreateToken(ctx, &grlv1.CreateTokenRequest{Name: "a", Role: 1, DurationMs: 1<<63 - 1})
			return err
		},
		"an id that is none": func() error { _, err := anyone.RevokeToken(ctx, &grlv1.RevokeTokenRequest{Id: "*"}); return err },
	} {
		wantRPC(t, what, call(), connect.CodeInvalidArgument)
	}
	_, err := anyone.Login(ctx, &grlv1.LoginRequest{Account: strings.Repeat("a", MaxLogin), Password: "p"})
	wantRPC(t, "a large message", err, connect.CodeResourceExhausted)
	_, err = anyone.Login(ctx, &grlv1.LoginRequest{Account: strings.Repeat("a", 1000), Password: strings.Repeat("p", 5000)})
	wantRPC(t, "a long password", err, connect.CodeUnauthenticated)
}
