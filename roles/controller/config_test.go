package controller

import (
	"strings"
	"testing"
	"time"
)

func TestConfigOfARegion(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string // in the error; empty: valid
	}{
		{"a region", func(*Config) {}, ""},
		{"limits of its own", func(c *Config) { c.Limits = "limits" }, "they come from http://parent"},
		{"a parent that is no URL", func(c *Config) { c.Parent = []string{"parent:7070"} }, `controller.parent: "parent:7070"`},
		{"the parent's name", func(c *Config) { c.Region = "global" }, `controller.region: "global"`},
		{"no autonomy", func(c *Config) { c.Autonomy = 0 }, ""},
		{"a bare number", func(c *Config) { c.Autonomy = 30 }, "write a unit"},
		{"an autonomy of days", func(c *Config) { c.Autonomy = 48 * time.Hour }, "controller.autonomy"},
		{"no parent, and limits", func(c *Config) { c.Parent, c.Limits, c.Region = nil, "limits", "global" }, ""},
	} {
		c := Default()
		c.Region, c.Parent = "eu", []string{"http://parent"}
		tt.change(&c)
		if err := c.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
