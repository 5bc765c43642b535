// Command measure runs the policies over a folder of series:
//
//	go run ./policy/backtest/internal/measure check ../shared/data/series
//	go run ./policy/backtest/internal/measure write ../shared/data/series docs/rlc.md
//
// check fails if they do worse than they are said to. write puts the tables of
// figures into a document, between two comments that must be there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grl/policy/backtest"
)

// leftOut is a day of seconds: too short for weeks of history.
const leftOut = "tweetstream_1s_day"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "check":
		files, err := readAll(args[1])
		if err != nil {
			return err
		}
		return check(ctx, files)
	case len(args) == 3 && args[0] == "write":
		files, err := readAll(args[1])
		if err != nil {
			return err
		}
		return write(ctx, files, args[2])
	default:
		return errors.New("want check DIR, or write DIR DOCUMENT")
	}
}

// readAll reads the series of a folder, in the order of their names.
func readAll(dir string) ([]*backtest.File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.csv.gz"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var files []*backtest.File
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), leftOut) {
			continue
		}
		file, err := backtest.ReadFile(path, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) < 2 {
		return nil, fmt.Errorf("%d series in %s, want at least two", len(files), dir)
	}
	return files, nil
}
