package roles

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

// TestFirstLink begins with a controller that speaks TLS and has no account: the
// link that it prints leads to where the first one is made, and until then
// nobody may anything.
func TestFirstLink(t *testing.T) {
	ca := newTestCA(t, testDomain)
	c := tlsConfig(ca.issue(region))
	c.Controller.Listen = "127.0.0.1:0"
	c.Controller.DB = filepath.Join(t.TempDir(), "db")
	var out, log bytes.Buffer
	p, err := start(t.Context(), c, Options{
		Roles: []string{access.Controller}, Log: slog.New(slog.NewTextHandler(&log, nil)), Level: new(slog.LevelVar), Version: "test", Out: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	base := "https://" + p.at(t, "controller.listen")
	link := regexp.MustCompile(regexp.QuoteMeta(base) + `/first\?token=(\S+)`).FindStringSubmatch(out.String())
	if link == nil {
		t.Fatalf("prints %q, want a link to %s", out.String(), base)
	}
	dial := ca.with(0, 0)
	if _, err := grlv1connect.NewViewServiceClient(dial, base).ListBuckets(t.Context(), &grlv1.ListBucketsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("reading without an account: %v, want unauthenticated", err)
	}
	resp, err := dial.Get(link[0])
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("<form")) {
		t.Errorf("the link answers %d, %v, without a form", resp.StatusCode, err)
	}
	if err := p.drain(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), link[1]) {
		t.Error("the secret of the link is in the log")
	}
}

// TestEveryoneIsAdminOnLoopback is the easy default: a controller in plain text
// on loopback, without an account, prints no link and lets everyone in.
func TestEveryoneIsAdminOnLoopback(t *testing.T) {
	address := run(t, Default(), slog.DiscardHandler, access.Controller).at(t, "controller.listen")
	who, err := grlv1connect.NewAccessServiceClient(http.DefaultClient, "http://"+address).WhoAmI(t.Context(), &grlv1.WhoAmIRequest{})
	if err != nil || who.GetBy() != "open" || who.GetAccount().GetRole() != grlv1.AccountRole_ACCOUNT_ROLE_ADMIN {
		t.Errorf("is %v, %v; want an admin", who, err)
	}
}
