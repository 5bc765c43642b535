package people

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/store/ledger"
)

// MaxRequest is the largest message to the AccessService, in bytes: an account
// that lists all its services and owners.
const MaxRequest = 1 << 20

// MaxLogin is the largest message of a login, in bytes: the longest password,
// escaped. Anyone may send one.
const MaxLogin = 8 << 10

// rpc serves People as an AccessService.
type rpc struct{ people *People }

var _ grlv1connect.AccessServiceHandler = rpc{}

// Bounds returns the options of a procedure of the AccessService.
func Bounds(s connect.Spec) []connect.HandlerOption {
	if s.Procedure == grlv1connect.AccessServiceLoginProcedure {
		return []connect.HandlerOption{connect.WithReadMaxBytes(MaxLogin)}
	}
	return []connect.HandlerOption{connect.WithReadMaxBytes(MaxRequest)}
}

// Service returns the AccessService, for connect's constructor of its handler;
// pass it connect.WithConditionalHandlerOptions(Bounds).
func (p *People) Service() grlv1connect.AccessServiceHandler { return rpc{p} }

// rpcError maps an error to one of Connect.
func (s rpc) rpcError(ctx context.Context, err error) error {
	r := asRefusal(ctx, s.people.log, err)
	return connect.NewError(r.Code, errors.New(r.Text))
}

// Login implements AccessService.
func (s rpc) Login(ctx context.Context, q *grlv1.LoginRequest) (*grlv1.LoginResponse, error) {
	bearer, ends, err := s.people.Login(ctx, q.GetAccount(), q.GetPassword())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.LoginResponse{Session: bearer, ExpiresAtMs: ends.UnixMilli()}, nil
}

// Logout implements AccessService.
func (s rpc) Logout(ctx context.Context, _ *grlv1.LogoutRequest) (*grlv1.LogoutResponse, error) {
	if err := s.people.Logout(ctx); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.LogoutResponse{}, nil
}

// WhoAmI implements AccessService.
func (s rpc) WhoAmI(ctx context.Context, _ *grlv1.WhoAmIRequest) (*grlv1.WhoAmIResponse, error) {
	who, err := caller(ctx)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.WhoAmIResponse{By: who.By, Account: &grlv1.Account{
		Name: who.Name, Role: roleOf(who.Level), Services: who.Services, Owners: who.Owners,
	}}, nil
}

// ListAccounts implements AccessService.
func (s rpc) ListAccounts(ctx context.Context, _ *grlv1.ListAccountsRequest) (*grlv1.ListAccountsResponse, error) {
	accounts, err := s.people.Accounts(ctx)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	answer := &grlv1.ListAccountsResponse{}
	for _, a := range accounts {
		answer.Accounts = append(answer.Accounts, accountMessage(a))
	}
	return answer, nil
}

// PutAccount implements AccessService.
func (s rpc) PutAccount(ctx context.Context, q *grlv1.PutAccountRequest) (*grlv1.PutAccountResponse, error) {
	a, err := s.people.PutAccount(ctx, ledger.Account{
		Name: q.GetAccount().GetName(), Role: roleName(q.GetAccount().GetRole()),
		Services: q.GetAccount().GetServices(), Owners: q.GetAccount().GetOwners(),
	}, q.GetPassword())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.PutAccountResponse{Account: accountMessage(a)}, nil
}

// DeleteAccount implements AccessService.
func (s rpc) DeleteAccount(ctx context.Context, q *grlv1.DeleteAccountRequest) (*grlv1.DeleteAccountResponse, error) {
	if err := s.people.DeleteAccount(ctx, q.GetName()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.DeleteAccountResponse{}, nil
}

// CreateToken implements AccessService.
func (s rpc) CreateToken(ctx context.Context, q *grlv1.CreateTokenRequest) (*grlv1.CreateTokenResponse, error) {
	if ms := q.GetDurationMs(); ms < 0 || ms > MaxTokenLife.Milliseconds() {
		return nil, s.rpcError(ctx, errTokenLife) // before it overflows a Duration
	}
	t, secret, err := s.people.CreateToken(ctx, ledger.Token{
		Name: q.GetName(), Account: q.GetAccount(), Role: roleName(q.GetRole()), Services: q.GetServices(),
	}, time.Duration(q.GetDurationMs())*time.Millisecond)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.CreateTokenResponse{Token: tokenMessage(t), Secret: secret}, nil
}

// ListTokens implements AccessService.
func (s rpc) ListTokens(ctx context.Context, _ *grlv1.ListTokensRequest) (*grlv1.ListTokensResponse, error) {
	tokens, err := s.people.Tokens(ctx)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	answer := &grlv1.ListTokensResponse{}
	for _, t := range tokens {
		answer.Tokens = append(answer.Tokens, tokenMessage(t))
	}
	return answer, nil
}

// RevokeToken implements AccessService.
func (s rpc) RevokeToken(ctx context.Context, q *grlv1.RevokeTokenRequest) (*grlv1.RevokeTokenResponse, error) {
	if err := s.people.RevokeToken(ctx, q.GetId()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.RevokeTokenResponse{}, nil
}

// ListSessions implements AccessService.
func (s rpc) ListSessions(ctx context.Context, _ *grlv1.ListSessionsRequest) (*grlv1.ListSessionsResponse, error) {
	sessions, err := s.people.Sessions(ctx)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	answer := &grlv1.ListSessionsResponse{}
	for _, n := range sessions {
		answer.Sessions = append(answer.Sessions, &grlv1.Session{
			Id: n.ID, Account: n.Account, From: n.From,
			CreatedAtMs: milliseconds(n.CreatedAt), UsedAtMs: milliseconds(n.UsedAt), ExpiresAtMs: milliseconds(n.ExpiresAt),
		})
	}
	return answer, nil
}

// EndSession implements AccessService.
func (s rpc) EndSession(ctx context.Context, q *grlv1.EndSessionRequest) (*grlv1.EndSessionResponse, error) {
	if err := s.people.EndSession(ctx, q.GetId()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.EndSessionResponse{}, nil
}

func accountMessage(a ledger.Account) *grlv1.Account {
	return &grlv1.Account{
		Name: a.Name, Role: roleOf(levelOf(a.Role)), Services: a.Services, Owners: a.Owners,
		CreatedAtMs: milliseconds(a.CreatedAt), Oidc: a.Password == "",
	}
}

func tokenMessage(t ledger.Token) *grlv1.Token {
	return &grlv1.Token{
		Id: t.ID, Name: t.Name, Account: t.Account, Role: roleOf(levelOf(t.Role)), Services: t.Services,
		CreatedAtMs: milliseconds(t.CreatedAt), ExpiresAtMs: milliseconds(t.ExpiresAt), UsedAtMs: milliseconds(t.UsedAt),
	}
}

// milliseconds returns 0 for the zero time.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func roleOf(l access.Level) grlv1.AccountRole {
	switch l {
	case access.Viewer:
		return grlv1.AccountRole_ACCOUNT_ROLE_VIEWER
	case access.Editor:
		return grlv1.AccountRole_ACCOUNT_ROLE_EDITOR
	case access.Admin:
		return grlv1.AccountRole_ACCOUNT_ROLE_ADMIN
	default:
		return grlv1.AccountRole_ACCOUNT_ROLE_UNSPECIFIED
	}
}

// roleName returns "" for what is no role.
func roleName(r grlv1.AccountRole) string {
	switch r {
	case grlv1.AccountRole_ACCOUNT_ROLE_VIEWER:
		return roleViewer
	case grlv1.AccountRole_ACCOUNT_ROLE_EDITOR:
		return roleEditor
	case grlv1.AccountRole_ACCOUNT_ROLE_ADMIN:
		return roleAdmin
	default:
		return ""
	}
}
