package access

import (
	"errors"
	"fmt"
	"strings"
)

// Roles of nodes, as certificates name them.
const (
	Client       = "client"
	Aggregator   = "aggregator"
	Controller   = "controller"
	Configurator = "configurator"
)

// Greatest lengths of a SPIFFE id, its trust domain, and a zone or service in it,
// in bytes.
const (
	maxID      = 2048
	maxDomain  = 255
	maxSegment = 256
)

// Roles lists the roles that a certificate may have.
func Roles() []string { return []string{Client, Aggregator, Controller, Configurator} }

// ID returns the SPIFFE id of n in a trust domain:
//
//	spiffe://DOMAIN/role/client/zone/ZONE/svc/SERVICE
//	spiffe://DOMAIN/role/aggregator/zone/ZONE
//
// Of a controller or configurator ZONE is its region. It returns an error for
// what ParseID would not read.
func (n Node) ID(domain string) (string, error) {
	id := "spiffe://" + domain + "/role/" + n.Role + "/zone/" + n.Zone
	if n.Service != "" {
		id += "/svc/" + n.Service
	}
	if _, _, err := ParseID(id); err != nil {
		return "", err
	}
	return id, nil
}

// ParseID returns the trust domain and the node of a SPIFFE id as ID writes it.
// Anything else is an error: an unknown role, a client without a service or
// another role with one, escapes, a port, a query, or a letter that SPIFFE does
// not allow.
func ParseID(id string) (domain string, n Node, err error) {
	defer func() {
		if err != nil {
			domain, n, err = "", Node{}, fmt.Errorf("read SPIFFE id %.300q: %w", id, err)
		}
	}()
	if len(id) > maxID {
		return "", n, fmt.Errorf("%d bytes, at most %d", len(id), maxID)
	}
	rest, ok := strings.CutPrefix(id, "spiffe://")
	if !ok {
		return "", n, errors.New("does not begin with spiffe://")
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 5 && len(parts) != 7 || parts[1] != "role" || parts[3] != "zone" || len(parts) == 7 && parts[5] != "svc" {
		return "", n, errors.New("is not DOMAIN/role/ROLE/zone/ZONE or that with /svc/SERVICE")
	}
	if err := CheckDomain(parts[0]); err != nil {
		return "", n, err
	}
	n = Node{Role: parts[2], Zone: parts[4]}
	if len(parts) == 7 {
		n.Service = parts[6]
	}
	return parts[0], n, n.check(len(parts) == 7)
}

// check returns what is wrong with a node; service says that it names one.
func (n Node) check(service bool) error {
	switch n.Role {
	case Client:
		if !service {
			return errors.New("client without /svc/SERVICE")
		}
	case Aggregator, Controller, Configurator:
		if service {
			return fmt.Errorf("%s with /svc/%s, which only clients have", n.Role, n.Service)
		}
	default:
		return fmt.Errorf("unknown role %q", n.Role)
	}
	if err := checkSegment("zone", n.Zone); err != nil {
		return err
	}
	if service {
		return checkSegment("service", n.Service)
	}
	return nil
}

// checkSegment returns what keeps s from being a segment of the path: it has 1
// to 256 letters, digits and characters of . _ - and begins with a letter or
// digit, so that it is a name in limits files too.
func checkSegment(what, s string) error {
	if s == "" || len(s) > maxSegment {
		return fmt.Errorf("%s of %d bytes, not of 1 to %d", what, len(s), maxSegment)
	}
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("%s %q: a certificate can name letters, digits and . _ - only, after a letter or digit", what, s)
		}
	}
	return nil
}

// CheckDomain returns what keeps s from being a trust domain: 1 to 255 lower-case
// letters, digits and characters of . _ -
func CheckDomain(s string) error {
	if s == "" || len(s) > maxDomain {
		return fmt.Errorf("trust domain of %d bytes, not of 1 to %d", len(s), maxDomain)
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("trust domain %q: has lower-case letters, digits and . _ - only", s)
		}
	}
	return nil
}

// String returns n for logs and refusals: "client of payments in zone eu1".
func (n Node) String() string {
	switch n.Role {
	case Client:
		return fmt.Sprintf("client of %s in zone %s", n.Service, n.Zone)
	case Aggregator:
		return "aggregator of zone " + n.Zone
	default:
		return n.Role + " of region " + n.Zone
	}
}
