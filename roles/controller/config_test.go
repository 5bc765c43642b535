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

func TestConfigOfAlerts(t *testing.T) {
	const hook = "https://alerts.example.com/grl/secret-path"
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string // in the error; empty: valid
	}{
		{"nowhere", func(*Config) {}, ""},
		{"a webhook", func(c *Config) { c.AlertWebhook = hook }, ""},
		{"a signed one", func(c *Config) { c.AlertWebhook, c.AlertWebhookSecretFile = hook, "secret" }, ""},
		{"a secret alone", func(c *Config) { c.AlertWebhookSecretFile = "secret" }, "there is no alert_webhook"},
		{"no URL", func(c *Config) { c.AlertWebhook = "alerts.example.com/secret-path" }, "controller.alert_webhook: no URL"},
		{"another scheme", func(c *Config) { c.AlertWebhook = "file:///secret-path" }, "controller.alert_webhook: no URL"},
		{"a broken one", func(c *Config) { c.AlertWebhook = "http://secret-path\x7f" }, "controller.alert_webhook: no URL"},
		{"with a password", func(c *Config) { c.AlertWebhook = "https://ann:secret-path@alerts.example.com" }, "has a name or password in it"},
		{"of a region", func(c *Config) { c.AlertWebhook, c.Region, c.Parent = hook, "eu", []string{"http://parent"} }, "the parent does"},
	} {
		c := Default()
		tt.change(&c)
		err := c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%s: the error tells what may be secret: %v", tt.name, err)
		}
	}
}
