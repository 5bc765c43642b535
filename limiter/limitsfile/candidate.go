package limitsfile

import (
	"grl/limiter"
	"grl/limiter/yamlfile"
)

// candidate reads candidate{rps}; 0 after an error.
func (d *decoder) candidate(n *yamlfile.Node, path string) float64 {
	if !d.IsMapping(n, path, `a mapping such as {rps: 1200}`) {
		return 0
	}
	var rps float64
	seen := map[string]yamlfile.Place{}
	d.Keys(n, path, seen, yamlfile.Fields{
		"rps": func(v *yamlfile.Node, path string) {
			rps = d.Decimal(v, path, yamlfile.DecimalRange{
				Expected: "a number of requests per second from 0.001 to 1000000000", Least: MinRPS, Most: MaxRPS,
				Zero: " (leave candidate out for none)",
			})
		},
	})
	if _, ok := seen["rps"]; !ok {
		d.Fail(n.Place, path, "no rps", "the limit in requests per second, as {rps: 1200}")
	}
	return rps
}

// candidateWhole checks what a candidate says beside the other keys.
func (d *decoder) candidateWhole(path string, seen map[string]yamlfile.Place, b *limiter.Bucket) {
	at, has := seen["candidate"]
	if !has {
		return
	}
	if _, blocks := seen["block"]; blocks {
		d.Fail(at, path+".candidate", "block and candidate", "one of them")
	}
	if _, says := seen["behavior"]; says && b.Behavior != limiter.Deny {
		d.Fail(at, path+".candidate", `"behavior: allow"`, `"behavior: deny" beside it (a bucket in shadow mode counts what its own limit would drop)`)
	}
}
