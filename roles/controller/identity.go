package controller

import (
	"fmt"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
)

// checkIdentity returns an error if the sender of a hello says that it is
// another node than its certificate does; n is nil where nodes speak plain text.
// A controller is trusted with all of its region.
func checkIdentity(n *access.Node, m *grlv1.Hello) error {
	switch {
	case n == nil:
		return nil
	case n.Role == access.Controller && m.GetRegion() != n.Zone:
		return fmt.Errorf("hello of region %q with the certificate of a %v", m.GetRegion(), n)
	case n.Role == access.Controller:
		return nil
	case m.GetRole() != grlv1.Role_ROLE_AGGREGATOR:
		return fmt.Errorf("hello of a %s with the certificate of an %v", roleWord(m.GetRole()), n)
	case m.GetZone() != n.Zone:
		return fmt.Errorf("hello of zone %q with the certificate of an %v", m.GetZone(), n)
	}
	return nil
}
