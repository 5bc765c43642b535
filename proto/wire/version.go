package wire

import (
	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

// Version returns that of a configuration on the wire.
func Version(m *grlv1.Configuration) limiter.Version {
	return limiter.Version{Epoch: m.GetEpoch(), Revision: m.GetRevision(), Serial: m.GetSerial()}
}
