// Writedocs writes docs/api.md from the comments of the proto files: run it with
// go generate ./roles/controller/api.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: writedocs PROTO-DIRECTORY FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "write documentation:", err)
		os.Exit(1)
	}
}

func write(dir, file string) error {
	text, err := render(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
