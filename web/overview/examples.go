package overview

// What the first steps show.
const (
	exampleLimits = `service: payments
owner: team-payments
buckets:
  - name: everything
    limit: {rps: 20000}
    behavior: allow   # shadow`

	exampleApply = `grl check limits/
grl apply -f limits/`

	exampleClient = `# grl.toml beside the service
[client]
service = "payments"
upstream = "http://127.0.0.1:8080"   # the service
listen = "127.0.0.1:9090"            # its callers come here`

	exampleServe = `grl serve --role aggregator,client`
)
