package rolestest

import (
	"net/http"

	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/client"
)

// AsAdmin has everyone who asks be an admin, as on loopback while there is no
// account.
func AsAdmin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := access.Identity{Person: &access.Person{Name: "admin", Level: access.Admin, By: "open"}, From: "test"}
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), id)))
	})
}

// Config returns a client of the ConfigService of the controller without a
// parent, who is an admin.
func (p *Plane) Config() grlv1connect.ConfigServiceClient {
	return grlv1connect.NewConfigServiceClient(p.Network.Client(p.t), "http://"+global)
}

// Incident returns a client of its IncidentService.
func (p *Plane) Incident() grlv1connect.IncidentServiceClient {
	return grlv1connect.NewIncidentServiceClient(p.Network.Client(p.t), "http://"+global)
}

// Policy returns a client of its PolicyService.
func (p *Plane) Policy() grlv1connect.PolicyServiceClient {
	return grlv1connect.NewPolicyServiceClient(p.Network.Client(p.t), "http://"+global)
}

// Disable has a host that keeps its state drop nothing, by its switch file.
func (p *Plane) Disable(host string) {
	p.t.Helper()
	config := client.Default()
	config.StateDir = p.state(host)
	if err := client.WriteSwitch(client.SwitchFile(config)); err != nil {
		p.t.Fatal(err)
	}
}
