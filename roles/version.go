package roles

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"grl/web"
)

// VersionCommand returns the command that says what this binary is.
func VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and what the build holds",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			assets := "in"
			if !web.AssetsBuilt() {
				assets = "missing (go generate ./web before the build); pages do not update in place"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "grl %s\ncommit: %s\ngo: %s %s/%s\nbrowser assets: %s\n",
				Version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, assets)
			return err
		},
	}
}

// Version returns the version of the module, "(devel)" for a build from a
// checkout without version control.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// commit returns the commit this was built from, with "+changes" when the
// checkout had some, or "unknown" when built without version control.
func commit() string {
	revision, changed := "unknown", ""
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return revision
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	return revision + changed
}
