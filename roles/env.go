package roles

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"grl/roles/command/remote"
)

// injected are variables that Kubernetes sets in each container for a service
// whose name begins with grl. No key ends like them.
var injected = regexp.MustCompile(`^GRL_(.*_)?(SERVICE_HOST|(SERVICE_PORT|PORT)(_.*)?)$`)

// readEnv returns the keys that GRL_* variables set. Unknown ones are errors
// that name the nearest, save those that Kubernetes injects.
func readEnv(environ []string) (map[string]any, error) {
	byVariable := map[string]Key{}
	var variables []string
	for _, k := range Keys() {
		byVariable[k.Env()] = k
		variables = append(variables, k.Env())
	}
	values := map[string]any{}
	var errs []error
	for variable, value := range grlVariables(environ) {
		k, known := byVariable[variable]
		if !known {
			if !ofCommands(variable) && !injected.MatchString(variable) {
				errs = append(errs, fmt.Errorf("unknown environment variable %s; nearest is %s", variable, nearest(variable, variables)))
			}
			continue
		}
		v, err := k.parse(value)
		if err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %q is not a %s like %s", variable, value, k.Kind(), example(k)))
			continue
		}
		values[k.Name] = v
	}
	return values, errors.Join(errs...)
}

// ignoredEnv lists the GRL_* variables that Load passes over because they look
// like those that Kubernetes injects.
func ignoredEnv(environ []string) []string {
	known := map[string]bool{}
	for _, k := range Keys() {
		known[k.Env()] = true
	}
	var ignored []string
	for variable := range grlVariables(environ) {
		if !known[variable] && !ofCommands(variable) && injected.MatchString(variable) {
			ignored = append(ignored, variable)
		}
	}
	return ignored
}

// ofCommands reports whether a variable is one of the commands that call a
// controller: it may be set for them where serve starts too.
func ofCommands(variable string) bool { return slices.Contains(remote.Variables(), variable) }

// grlVariables yields the names and values of the GRL_* variables in environ.
func grlVariables(environ []string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for _, e := range environ {
			name, value, _ := strings.Cut(e, "=")
			if strings.HasPrefix(name, "GRL_") && !yield(name, value) {
				return
			}
		}
	}
}
