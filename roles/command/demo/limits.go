package demo

import (
	"fmt"
	"strings"
)

const (
	service        = "shop"
	productsPrefix = "productcatalogservice."

	// Full names of the buckets in file.
	bucketAll       = service + "/all"
	bucketProducts  = service + "/products"
	bucketPerCaller = service + "/each-caller"
)

// file returns the limits file that the controller watches.
//
// What a bucket drops does not reach the wider ones, so a second enforced
// bucket would change what arrives at "all" while that settles; the per-caller
// one is in shadow, and shows whom it would have stopped.
func (l limits) file() string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: %s\n", service)
	fmt.Fprintln(&b, "owner: team-shop")
	fmt.Fprintln(&b, "buckets:")
	fmt.Fprintln(&b, "  - name: products             # shadow: counts what it would drop, drops nothing")
	fmt.Fprintf(&b, "    match: {procedure: %q}\n", productsPrefix+"*")
	fmt.Fprintf(&b, "    limit: {rps: %.0f}\n", l.products)
	fmt.Fprintln(&b, "    behavior: allow")
	fmt.Fprintln(&b, "  - name: each-caller          # a limit for each caller, in shadow too")
	fmt.Fprintln(&b, "    match: {caller: \"*\"}")
	fmt.Fprintln(&b, "    per: caller")
	fmt.Fprintf(&b, "    limit: {rps: %.0f}\n", l.perCaller)
	fmt.Fprintln(&b, "    behavior: allow")
	fmt.Fprintln(&b, "  - name: all                  # enforced: all that the shop is asked")
	fmt.Fprintf(&b, "    limit: {rps: %.0f}\n", l.all)
	fmt.Fprintln(&b, "    behavior: deny")
	return b.String()
}
