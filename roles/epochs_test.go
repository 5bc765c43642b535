package roles_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/wire"
)

// heard is a host whose hello says that it has heard an epoch of the global
// decider.
func (f *fleet) heard(zone, node string, epoch uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := grlv1connect.NewTreeServiceClient(f.Network.Client(f.t), "http://aggregator-"+zone).Join(ctx)
	if err == nil {
		err = s.Send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Hello{Hello: &grlv1.Hello{
			Role: grlv1.Role_ROLE_CLIENT, Node: node, Zone: zone, Region: "r1", BootId: 1, Services: []string{"shop"},
			Heard: wire.Heard(map[string]uint64{"global": epoch}),
		}}})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	go func() {
		for {
			if _, err := s.Receive(); err != nil {
				return
			}
		}
	}()
	f.t.Cleanup(func() {
		cancel()
		_ = s.CloseRequest()
		_ = s.CloseResponse()
	})
}

// What one host says that it has heard cannot use up the epochs: after it, and
// after each start of the controller, limits hold.
func TestForgedEpochUsesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 750, 750)
		f.offer(slow)
		for range 3 {
			f.heard("z1", "liar", wire.MaxEpoch-1)
			f.offer(5 * time.Second)
			f.Stop("controller")
			f.Controller()
			f.offer(slow)
			f.steady("after the controller started again", 5, 1000, 0.02)
		}
	})
}
