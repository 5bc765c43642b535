package command

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
)

// Export returns the command that writes the configuration as limits files.
func Export() *cobra.Command {
	var call calling
	var revision uint64
	var service, dir string
	cmd := &cobra.Command{
		Use:   "export [--revision REVISION] [-o DIR]",
		Short: "Write the configuration as limits files",
		Long: `Write the configuration as limits files in their normal form: one for each service
into the directory that -o names, or all to the output, with a line "---" between
them. Applying them again changes nothing.`,
		Example: "  grl export -o limits/",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			c, err := conn.Config.GetConfiguration(remote.WithTimeout(cmd.Context(), applyTimeout),
				&grlv1.GetConfigurationRequest{Revision: revision, Service: service})
			if err != nil {
				return err
			}
			if dir == "" {
				return writeFiles(cmd.OutOrStdout(), c.GetFiles())
			}
			return exportTo(cmd.OutOrStdout(), dir, c)
		},
	}
	call.connects(cmd)
	cmd.Flags().Uint64Var(&revision, "revision", 0, "`revision` to write (default: the present one)")
	cmd.Flags().StringVar(&service, "service", "", "only the file of this `service`")
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`directory` to write into, which is made")
	return cmd
}

func writeFiles(w io.Writer, files []*grlv1.LimitsFile) error {
	for i, f := range files {
		separator := ""
		if i > 0 {
			separator = "---\n"
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, f.GetData()); err != nil {
			return err
		}
	}
	return nil
}

// exportTo writes files below dir, each as a whole, and says which others are
// there.
func exportTo(w io.Writer, dir string, c *grlv1.GetConfigurationResponse) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	written := map[string]bool{}
	for _, f := range c.GetFiles() {
		path := filepath.Join(dir, fileName(f.GetName()))
		if err := writeWhole(path, f.GetData()); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		written[path] = true
	}
	fmt.Fprintf(w, "wrote r%d to %s: %s\n", c.GetRevision().GetNumber(), dir, count(len(written), "file"))
	sources, err := limitsfile.ReadDir(dir)
	if err != nil {
		return nil // of what else is there
	}
	for _, s := range sources {
		if !written[s.Name] {
			fmt.Fprintf(w, "note: %s was there before, and is not of r%d\n", s.Name, c.GetRevision().GetNumber())
		}
	}
	return nil
}

// fileName returns a name without directories for a limits file: what comes from
// a controller does not say where to write.
func fileName(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, name), ".") + ".yaml"
}

// writeWhole writes a file so that it is there as a whole or not at all.
func writeWhole(path string, data []byte) error {
	temp := filepath.Join(filepath.Dir(path), ".grl-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}
