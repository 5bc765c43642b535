// Package command holds the commands of grl that call its public API or need
// several packages, a file each.
package command

// Exit codes besides 0 (done) and 1 (failed).
const (
	ExitWrongUse = 2 // a flag or argument that makes no sense
	ExitNotHolds = 3 // the checked thing does not hold
)

// ExitError ends grl with an exit code.
type ExitError struct {
	Code int
	// Err is what to print; nil when all has been said already.
	Err error
}

// Error returns Err's text, "" when there is nothing left to print.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

func wrongUse(err error) error { return &ExitError{Code: ExitWrongUse, Err: err} }
