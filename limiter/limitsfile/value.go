package limitsfile

import (
	"regexp"
	"strings"

	"grl/limiter/yamlfile"
)

// The kinds of names that only limits files have.
var (
	bucketName    = yamlfile.ServiceName
	ownerName     = yamlfile.RegionName
	procedureName = yamlfile.NameKind{
		Form: regexp.MustCompile(`^[A-Za-z0-9.:/{}$~%@+,=-]([A-Za-z0-9._:/{}$~%@+,=-]| [A-Za-z0-9._:/{}$~%@+,=-])*$`),
		Rule: "letters, digits, . _ : / - { } $ ~ % @ + , = and single spaces between, with no _ in front",
	}
	headerName   = yamlfile.NameKind{Form: regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), Rule: "the name of a header"}
	headerValue  = yamlfile.NameKind{Form: regexp.MustCompile(`^[!#-\[\]-~]+$`), Rule: "a header value of ASCII characters other than space, \" and \\"}
	tierName     = yamlfile.NameKind{Form: regexp.MustCompile(`^[A-Za-z0-9_-]+$`), Rule: "letters, digits, - and _"}
	metadataName = yamlfile.NameKind{Form: regexp.MustCompile(`^[a-z0-9._-]+$`), Rule: "a metadata key: lower-case letters, digits and . _ -"}
)

// rps reads a limit in requests per second; 0 after an error.
func (d *decoder) rps(n *yamlfile.Node, path string) float64 {
	return d.Decimal(n, path, yamlfile.DecimalRange{
		Expected: "a number of requests per second from 0.001 to 1000000000", Least: MinRPS, Most: MaxRPS,
		Zero: ` (write "block: true" instead of the limit to drop everything)`,
	})
}

// weight reads a weight under max-min; 0 after an error.
func (d *decoder) weight(n *yamlfile.Node, path string) float64 {
	return d.Decimal(n, path, yamlfile.DecimalRange{Expected: "a number from 0.001 to 1000", Least: MinWeight, Most: MaxWeight})
}

func (d *decoder) header(n *yamlfile.Node, path string) string { return d.Name(n, path, headerName) }

// metadata reads a gRPC metadata key that an application may set, with a value
// that is text.
func (d *decoder) metadata(n *yamlfile.Node, path string) string {
	key := d.Name(n, path, metadataName)
	if strings.HasSuffix(key, "-bin") || strings.HasPrefix(key, "grpc-") {
		d.Fail(n.Place, path, yamlfile.Quote(key), "a metadata key without grpc- in front or -bin behind")
	}
	return key
}
