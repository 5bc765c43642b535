// Command copyassets copies the browser assets that assets.json lists from
// node_modules to dist, under names that contain package, version, file and
// hash, each with its licence beside it. It refuses a file whose hash is not the listed one,
// and removes from dist what is not listed. It runs in the folder web:
//
//	go run ./internal/copyassets
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is one file of the manifest.
type entry struct {
	Name        string `json:"name"`         // npm package
	Version     string `json:"version"`      // exact
	Licence     string `json:"licence"`      // SPDX identifier
	LicencePath string `json:"licence_path"` // below node_modules, with slashes
	Path        string `json:"path"`         // below node_modules, with slashes
	SHA256      string `json:"sha256"`       // of the file, hexadecimal
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "copyassets:", err)
		os.Exit(1)
	}
}

// run fills dist below dir from its node_modules and assets.json. All files
// are checked before the first is written.
func run(dir string) error {
	entries, err := readManifest(filepath.Join(dir, "assets.json"))
	if err != nil {
		return err
	}
	files := make(map[string][]byte) // name in dist → content
	var errs []error
	for _, e := range entries {
		if err := e.collect(os.DirFS(filepath.Join(dir, "node_modules")), files); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return replace(filepath.Join(dir, "dist"), files)
}

func readManifest(name string) ([]entry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	var entries []entry
	if err := dec.Decode(&entries); err != nil {
		return nil, fmt.Errorf("read manifest %q: %w", name, err)
	}
	return entries, nil
}

// collect adds the file of e and its licence to files, after checking that
// they are what the manifest says.
func (e entry) collect(modules fs.FS, files map[string][]byte) error {
	version, err := installedVersion(modules, e.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	if version != e.Version {
		return fmt.Errorf("%s: version %s is installed, assets.json lists %s", e.Name, version, e.Version)
	}
	body, err := fs.ReadFile(modules, e.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if hash != e.SHA256 {
		return fmt.Errorf("%s: sha256 of %s is %s, assets.json lists %s", e.Name, e.Path, hash, e.SHA256)
	}
	licence, err := fs.ReadFile(modules, e.LicencePath)
	if err != nil {
		return fmt.Errorf("%s: licence: %w", e.Name, err)
	}
	base := strings.ReplaceAll(strings.TrimPrefix(e.Name, "@"), "/", "-") + "-" + e.Version
	ext := filepath.Ext(e.Path)
	stem := strings.TrimSuffix(path.Base(e.Path), ext)
	files[base+"-"+stem+"-"+hash[:10]+ext] = body
	files[base+"-LICENSE.txt"] = licence
	return nil
}

func installedVersion(modules fs.FS, name string) (string, error) {
	data, err := fs.ReadFile(modules, name+"/package.json")
	if err != nil {
		return "", err
	}
	var p struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return "", fmt.Errorf("package.json: %w", err)
	}
	return p.Version, nil
}

// replace makes files the content of dist. Hidden files, such as .gitignore,
// stay; so does a file that is already right, with its time.
func replace(dist string, files map[string][]byte) error {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	present, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	for _, d := range present {
		if _, listed := files[d.Name()]; listed || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dist, d.Name())); err != nil {
			return err
		}
	}
	for name, body := range files {
		file := filepath.Join(dist, name)
		if old, err := os.ReadFile(file); err == nil && slices.Equal(old, body) {
			continue
		}
		if err := os.WriteFile(file, body, 0o644); err != nil {
			return err
		}
	}
	return nil
}
