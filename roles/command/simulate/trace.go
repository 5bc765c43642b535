package simulate

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"

	"grl/roles/fleet"
)

// ReadTrace reads a trace from a CSV file, or from a gzipped one whose name
// ends in .gz. An error of its content has the line.
func ReadTrace(path string) (*fleet.Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			return nil, fmt.Errorf("read trace %s: %w", path, err)
		}
		in = unzipped
	}
	t, err := fleet.ReadTrace(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
