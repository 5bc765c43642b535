package roles

import (
	"slices"
	"testing"
)

// A role finds the others of its configuration wherever they listen, unless it is
// told where they are.
func TestNeighbours(t *testing.T) {
	const aggregators, controllers = "http://127.0.0.1:7071", "http://127.0.0.1:7070"
	for _, tt := range []struct {
		name                     string
		flags                    map[string]any
		aggregators, controllers string
	}{
		{"by default", nil, aggregators, controllers},
		{"another port", map[string]any{"controller.listen": "127.0.0.1:8070", "aggregator.listen": "127.0.0.1:8071"}, "http://127.0.0.1:8071", "http://127.0.0.1:8070"},
		{"all addresses", map[string]any{"controller.listen": ":8070", "aggregator.listen": "[::]:8071"}, "http://127.0.0.1:8071", "http://127.0.0.1:8070"},
		{"one address", map[string]any{"controller.listen": "[fd00::1]:8070"}, aggregators, "http://[fd00::1]:8070"},
		{"a port that is not known yet", map[string]any{"controller.listen": "127.0.0.1:0"}, aggregators, controllers},
		{"with certificates", map[string]any{"controller.listen": ":8070", "tls.cert": "c", "tls.key": "k", "tls.ca": "a"}, aggregators, "https://127.0.0.1:8070"},
		{"told where", map[string]any{"controller.listen": ":8070", "aggregator.controllers": []string{controllers}, "configurator.controller": []string{controllers}}, aggregators, controllers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Load("", nil, tt.flags)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.Client.Aggregators, []string{tt.aggregators}) || !slices.Equal(c.Aggregator.Controllers, []string{tt.controllers}) ||
				!slices.Equal(c.Configurator.Controller, []string{tt.controllers}) {
				t.Errorf("client looks at %v, aggregator at %v, configurator at %v; want %s and %s",
					c.Client.Aggregators, c.Aggregator.Controllers, c.Configurator.Controller, tt.aggregators, tt.controllers)
			}
		})
	}
}

// The address of the dashboard is one that a browser here can open.
func TestReachedAt(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7070": "http://127.0.0.1:7070", "[::]:7070": "http://127.0.0.1:7070", "0.0.0.0:7070": "http://127.0.0.1:7070",
		"grl.internal:7070": "http://grl.internal:7070", ":0": "", "nonsense": "",
	} {
		if got, ok := reachedAt(listen, false); got != want || ok != (want != "") {
			t.Errorf("reachedAt(%q) = %q, %v, want %q", listen, got, ok, want)
		}
	}
}
