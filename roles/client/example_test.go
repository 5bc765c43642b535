package client_test

import (
	"context"
	"log"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/roles/client"
)

// A service that embeds grl: the middleware decides, the client beside it keeps
// the limiter fed.
func Example() {
	config := client.Default() // zone and region "local", an aggregator on this machine
	config.Service = "payments"
	config.Aggregators = []string{"http://127.0.0.1:7071"}

	l := limiter.New(limiter.Options{Zone: config.Zone, Region: config.Region})
	c, err := client.New(client.Options{
		Config:   config,
		Limiter:  l,
		Log:      slog.Default(),
		Registry: prometheus.DefaultRegisterer,
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = c.Run(context.Background()) }()

	identity, err := httplimit.NewIdentity(httplimit.IdentityConfig{Headers: []string{"rpc-caller"}})
	if err != nil {
		log.Fatal(err)
	}
	limit := httplimit.Middleware(l, httplimit.Options{Service: "payments", Identity: identity})

	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/charges/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("charge " + r.PathValue("id") + "\n"))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", limit(mux)))
}
