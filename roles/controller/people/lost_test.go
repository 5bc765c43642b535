package people

import (
	"net/url"
	"strings"
	"testing"

	"grl/proto/access"
	"grl/store"
	"grl/store/ledger"
)

// TestAccountsWereLost has a store without accounts that may have had some: on
// loopback too nobody is admin but by the link.
func TestAccountsWereLost(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := New(Options{Ledger: ledger.New(s), Lost: true})
	if err != nil {
		t.Fatal(err)
	}
	if p.Open(t.Context()) {
		t.Error("everyone is admin")
	}
	if p.MayCreateFirst(open(t), "") {
		t.Error("anyone may make the first account")
	}
	path, err := p.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := url.QueryUnescape(strings.TrimPrefix(path, "/first?token="))
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := p.CreateFirst(calling(t, "127.0.0.1", nil), token, "ann", rootPassword)
	if err != nil {
		t.Fatalf("with the link: %v", err)
	}
	if who, err := p.Person(t.Context(), bearer, ""); err != nil || who.Level != access.Admin {
		t.Errorf("who used the link is %+v, %v", who, err)
	}
}
