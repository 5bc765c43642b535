package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// describedElsewhere are the commands whose flags have documents of their own.
var describedElsewhere = []string{"serve", "demo", "simulate", "pki", "check"}

// TestDocumentedCommands looks for each command, and each of its flags, in
// docs/cli.md.
func TestDocumentedCommands(t *testing.T) {
	document := readDocument(t, "docs/cli.md")
	root, _ := rootCommand()
	for _, c := range root.Commands() {
		if c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		_, section, ok := strings.Cut(document, "grl "+c.Name())
		if !ok {
			t.Errorf("docs/cli.md has nothing about grl %s", c.Name())
			continue
		}
		if !slices.Contains(describedElsewhere, c.Name()) {
			checkDocumented(t, document, section, c)
		}
	}
}

// checkDocumented looks for the flags of a command, and for the names of those
// below it.
func checkDocumented(t *testing.T, document, section string, c *cobra.Command) {
	t.Helper()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(document, "`--"+f.Name) && !strings.Contains(document, "--"+f.Name+" ") {
			t.Errorf("docs/cli.md has no --%s of %s", f.Name, c.CommandPath())
		}
	})
	for _, sub := range c.Commands() {
		if !sub.Hidden && !strings.Contains(section, sub.Name()) {
			t.Errorf("docs/cli.md has nothing about %s", sub.CommandPath())
		}
		checkDocumented(t, document, section, sub)
	}
}
