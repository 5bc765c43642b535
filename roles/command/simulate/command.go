package simulate

import (
	"strconv"
	"strings"

	"grl/roles/fleet"
)

// command returns the command line that runs f under laws again.
func (o *Options) command(f fleet.Options, laws []string) string {
	var c commandLine
	c.add("scenario", f.Scenario)
	c.add("law", strings.Join(laws, ","))
	if f.Trace != nil {
		c.add("trace", o.TracePath)
	}
	c.add("hosts", strconv.Itoa(f.Hosts))
	c.add("zones", strconv.Itoa(f.Zones))
	c.count("regions", f.Regions)
	if o.Limits != nil {
		c.add("limits", o.LimitsPath)
	} else {
		c.count("services", f.Services)
		c.add("limit", number(f.LimitRPS))
		if f.Trace == nil {
			c.add("base", number(f.BaseRPS))
		}
	}
	c.count("seconds", int(f.Length.Seconds()))
	c.setting("delta", f.Delta != 0, f.Delta.String())
	c.setting("guard", f.Guard != 0, number(max(0, f.Guard)))
	c.setting("host-link", f.Links.Host != 0, f.Links.Host.String())
	c.setting("node-link", f.Links.Aggregator != 0, f.Links.Aggregator.String())
	c.setting("jitter", f.Links.Jitter != 0, f.Links.Jitter.String())
	c.setting("loss", f.Loss != 0, number(f.Loss))
	c.setting("duplication", f.Duplication != 0, number(f.Duplication))
	c.add("seed", strconv.FormatUint(f.Seed, 10))
	return "grl simulate" + c.String()
}

// commandLine is a row of flags.
type commandLine struct{ strings.Builder }

func (c *commandLine) add(flag, value string) {
	c.WriteString(" --" + flag + " " + quote(value))
}

// count adds what was asked for; 0 is the default.
func (c *commandLine) count(flag string, n int) { c.setting(flag, n != 0, strconv.Itoa(n)) }

func (c *commandLine) setting(flag string, set bool, value string) {
	if set {
		c.add(flag, value)
	}
}

// quote makes one word of s for a shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,=@:+"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// number prints v with as many digits as it has.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
