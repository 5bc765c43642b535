package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"grl/roles/command/remote"
)

// applyTimeout bounds the calls that check and write a whole configuration.
const applyTimeout = 60 * time.Second

// calling is what the commands that call a controller have in common. Its zero
// value has no flags yet.
type calling struct {
	flags  remote.Flags
	output string
	asJSON bool
}

// formats are what calling.print can print.
var formats = []string{"table", "json", "yaml"}

// connects adds the flags of the connection to cmd and its subcommands.
func (c *calling) connects(cmd *cobra.Command) {
	c.flags.Add(cmd.PersistentFlags())
}

// prints adds the flags of the output to cmd.
func (c *calling) prints(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&c.output, "output", "o", "table", "output `format`: table, json or yaml")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "short for -o json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// format returns in which of formats to print.
func (c *calling) format() (string, error) {
	switch {
	case c.asJSON:
		return "json", nil
	case c.output == "":
		return "table", nil // a command without the flags
	case !slices.Contains(formats, c.output):
		return "", wrongUse(fmt.Errorf("unknown output %q: use table, json or yaml", c.output))
	}
	return c.output, nil
}

// dial connects cmd to the controller, once the flags are known to hold.
func (c *calling) dial(cmd *cobra.Command) (*remote.Conn, error) {
	if _, err := c.format(); err != nil {
		return nil, err
	}
	conn, err := c.flags.Dial(cmd.Context(), os.Getenv)
	if errors.Is(err, remote.ErrUsage) {
		return nil, wrongUse(err)
	}
	if err != nil {
		return nil, err
	}
	if conn.Exposed {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the token goes to %s in plain text; use https\n", conn.URL)
	}
	return conn, nil
}

// print writes a message as JSON or YAML, as the API would, or else what table
// returns.
func (c *calling) print(w io.Writer, m proto.Message, table func() string) error {
	format, err := c.format()
	if err != nil {
		return err
	}
	if format == "table" {
		_, err = io.WriteString(w, table())
		return err
	}
	text, err := jsonText(m)
	if err != nil {
		return err
	}
	return printJSON(w, text, format)
}

// jsonText returns a message in the JSON of the API, values that are zero too.
func jsonText(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
}

// printJSON writes JSON for people to read, or as YAML.
func printJSON(w io.Writer, text []byte, format string) error {
	if format == "yaml" {
		out, err := yaml.JSONToYAML(text)
		if err != nil {
			return err
		}
		_, err = w.Write(out)
		return err
	}
	// protojson spaces its output at random, so that nobody relies on it.
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n", b.Bytes())
	return err
}

// needReason returns what is wrong with an empty reason.
func needReason(reason string) error {
	if reason == "" {
		return wrongUse(errors.New("--reason is missing: say why, for those who come after"))
	}
	return nil
}

// atMostOne returns what is wrong if several of the named flags are set.
func atMostOne(cmd *cobra.Command, names ...string) error {
	var set []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			set = append(set, "--"+name)
		}
	}
	if len(set) > 1 {
		return wrongUse(fmt.Errorf("%s: want one of them", strings.Join(set, " and ")))
	}
	return nil
}
