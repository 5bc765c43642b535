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

	exampleClient = `# grl.toml; then: grl serve --role client
[client]
service = "payments"
upstream = "http://localhost:8080"
listen = ":9090"`
)
