package limitsfile

import "grl/limiter"

// candidate reads candidate{rps}; 0 after an error.
func (d *decoder) candidate(n *node, path string) float64 {
	if !d.isMapping(n, path, `a mapping such as {rps: 1200}`) {
		return 0
	}
	var rps float64
	seen := map[string]place{}
	d.keys(n, path, seen, fields{
		"rps": func(v *node, path string) {
			rps = d.decimal(v, path, decimalRange{
				"a number of requests per second from 0.001 to 1000000000", MinRPS, MaxRPS,
				" (leave candidate out for none)",
			})
		},
	})
	if _, ok := seen["rps"]; !ok {
		d.fail(n.place, path, "no rps", "the limit in requests per second, as {rps: 1200}")
	}
	return rps
}

// candidateWhole checks what a candidate says beside the other keys.
func (d *decoder) candidateWhole(path string, seen map[string]place, b *limiter.Bucket) {
	at, has := seen["candidate"]
	if !has {
		return
	}
	if _, blocks := seen["block"]; blocks {
		d.fail(at, path+".candidate", "block and candidate", "one of them")
	}
	if _, says := seen["behavior"]; says && b.Behavior != limiter.Deny {
		d.fail(at, path+".candidate", `"behavior: allow"`, `"behavior: deny" beside it (a bucket in shadow mode counts what its own limit would drop)`)
	}
}
