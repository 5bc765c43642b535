package wire

import (
	"strings"
	"testing"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

func TestConfigurationThisReaderMustRefuse(t *testing.T) {
	tests := []struct {
		name string
		m    *grlv1.Configuration
		want string
	}{
		{"for newer readers", &grlv1.Configuration{Whole: true, MinReaderVersion: ReaderVersion + 1}, "use a newer grl"},
		{"a cap of weeks", &grlv1.Configuration{Whole: true, Caps: []*grlv1.Cap{
			{Id: "1", Service: "pay", Gate: &grlv1.Cap_Block{Block: true}, RemainingMs: 1 << 40},
		}}, "at most 25h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ToConfiguration(&limiter.Configuration{}, tt.m)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ToConfiguration = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestFilterKeepsWhatConcernsTheChild(t *testing.T) {
	c := &limiter.Configuration{
		Revision: 1, Serial: 3, AllDisabled: true,
		Services: []limiter.Service{{Name: "pay"}, {Name: "mail", Enforce: limiter.Outbound}, {Name: "shop"}},
		Caps:     []limiter.Cap{{ID: "1", Service: "pay"}, {ID: "2", Service: "mail"}, {ID: "3", Service: "shop"}, {ID: "4", Service: "unlimited"}},
		Disabled: []string{"pay", "shop"},
	}
	got := Filter(c, &grlv1.Hello{Services: []string{"pay", "unlimited"}, Callers: []string{"pay"}})
	var caps []string
	for _, cap := range got.Caps {
		caps = append(caps, cap.ID)
	}
	if strings.Join(caps, " ") != "1 2 4" || strings.Join(got.Disabled, " ") != "pay" || !got.AllDisabled || got.Serial != 3 {
		t.Errorf("caps %v, disabled %v %v, serial %d; want 1 2 4, [pay] true, 3", caps, got.Disabled, got.AllDisabled, got.Serial)
	}
}
