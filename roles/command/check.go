package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy/policyfile"
)

// Check returns the command that validates limits files and policy files, and a
// grl.toml with configCheck, without a control plane. It exits with ExitNotHolds
// when they do not hold.
func Check(configCheck func(path string) error) *cobra.Command {
	var config, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [DIR|FILE]...",
		Short: "Validate limits files, policy files and grl.toml, offline",
		Long: `Validate limits files, as one configuration, policy files, and the configuration
file that --config names. Of a directory all *.yaml and *.yml below it are read, but for
what is hidden; a file with the key kind is a policy.

Each thing that does not hold is printed with its place, as file:line:column, what
was found and what was expected; the exit code is then 3.`,
		Example: "  grl check limits/\n  grl check --config grl.toml limits/",
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				output = "json"
			}
			if output != "table" && output != "json" {
				return wrongUse(fmt.Errorf("unknown output %q: use table or json", output))
			}
			if len(args) == 0 && config == "" {
				return wrongUse(errors.New("nothing to check: name a directory of limits files or policy files, or --config FILE"))
			}
			result, err := check(args, config, configCheck)
			if err != nil {
				return wrongUse(err)
			}
			if err := result.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), output); err != nil {
				return fmt.Errorf("print result: %w", err)
			}
			if !result.OK {
				return &ExitError{Code: ExitNotHolds}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "also validate this grl.toml `file`")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "output `format`: table or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "short for -o json")
	return cmd
}

// checkResult is what grl check found out; it is printed as JSON.
type checkResult struct {
	OK       bool              `json:"ok"`
	Files    int               `json:"files"`
	Services int               `json:"services"`
	Buckets  int               `json:"buckets"`
	Policies int               `json:"policies"`
	Errors   limitsfile.Errors `json:"errors"`

	services []limiter.Service // nil unless OK
}

// check reads and validates what paths name. The error is about the paths, not
// about what is in them.
func check(paths []string, config string, configCheck func(string) error) (checkResult, error) {
	r := checkResult{Errors: limitsfile.Errors{}}
	if config != "" {
		if _, err := os.Stat(config); err != nil {
			return r, fmt.Errorf("check configuration: %w", err)
		}
		if err := configCheck(config); err != nil {
			r.add(err)
		}
		r.Files++
	}
	var sources []limitsfile.Source
	for _, path := range paths {
		more, err := readPath(path)
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return r, fmt.Errorf("check limits: %w", err)
		}
		r.add(err)
		if err == nil && len(more) == 0 {
			r.add(limitsfile.Errors{{File: path, Problem: "no limits files, *.yaml or *.yml, in this directory"}})
		}
		sources = append(sources, more...)
	}
	sources = distinct(sources)
	r.Files += len(sources)
	limits, policies := split(sources)
	services, err := limitsfile.Load(limits)
	r.add(err)
	r.Services, r.Buckets = len(services), limitsfile.CountBuckets(services)
	specs, err := policyfile.Load(policies)
	r.add(err)
	r.Policies = len(specs)
	if r.OK = len(r.Errors) == 0; r.OK {
		r.services = services
	}
	return r, nil
}

// split tells limits files from policy files.
func split(sources []limitsfile.Source) (limits []limitsfile.Source, policies []policyfile.Source) {
	for _, s := range sources {
		if policyfile.Is(s.Data) {
			policies = append(policies, policyfile.Source(s))
		} else {
			limits = append(limits, s)
		}
	}
	return limits, policies
}

func readPath(path string) ([]limitsfile.Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return limitsfile.ReadDir(path)
	}
	s, err := limitsfile.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return []limitsfile.Source{s}, nil
}

// distinct drops what was named twice, such as a file beside its directory.
func distinct(sources []limitsfile.Source) []limitsfile.Source {
	seen := map[string]bool{}
	return slices.DeleteFunc(sources, func(s limitsfile.Source) bool {
		again := seen[s.Name]
		seen[s.Name] = true
		return again
	})
}

// add notes err; nil is none. What is wrong with a grl.toml comes as text that
// has the places in it, a line each.
func (r *checkResult) add(err error) {
	var errs limitsfile.Errors
	if errors.As(err, &errs) {
		r.Errors = append(r.Errors, errs...)
	} else if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.Errors = append(r.Errors, &limitsfile.Error{Problem: strings.TrimSuffix(line, "\n")})
		}
	}
}

// print writes the result to out; the errors of a table go to errOut.
func (r checkResult) print(out, errOut io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	if !r.OK {
		_, err := fmt.Fprintf(errOut, "%v\n%s\n", r.Errors, count(len(r.Errors), "error"))
		return err
	}
	found := []string{count(r.Files, "file"), count(r.Services, "service"), count(r.Buckets, "bucket")}
	if r.Policies > 0 {
		found = append(found, policies(r.Policies))
	}
	_, err := fmt.Fprintf(out, "ok: %s\n", strings.Join(found, ", "))
	return err
}

// count returns "1 file" or "3 files".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
