package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"grl/web/page"
)

//go:generate go tool templ generate
//go:generate npm ci --ignore-scripts --no-audit --no-fund
//go:generate go run ./internal/copyassets

// static holds our own stylesheet, script and icon.
//
//go:embed static
var static embed.FS

// dist holds what assets.json lists, put there by go generate. It is empty,
// but for its .gitignore, in a fresh clone.
//
//go:embed all:dist
var dist embed.FS

// AssetsBuilt reports whether the third-party browser assets are part of this
// binary. Without them pages work, but do not update in place.
func AssetsBuilt() bool {
	_, ok := builtFile(dist, htmxFile)
	return ok
}

// contentTypes is fixed, since what the system knows differs by machine.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are the files below /assets/. A file's name contains its hash, so it
// may be cached for ever. It is immutable and may be used concurrently.
type assets struct {
	files map[string]asset // name below /assets/ → file

	paths page.Assets // to print into pages
}

// asset is one file with its headers.
type asset struct {
	body        []byte
	contentType string
}

// newAssets reads our own files from own and the third-party ones from built,
// which may hold none.
func newAssets(own, built fs.FS) (*assets, error) {
	a := &assets{files: make(map[string]asset)}
	for name, link := range map[string]*string{
		"static/grl.css":     &a.paths.Style,
		"static/favicon.svg": &a.paths.Icon,
		"static/live.js":     &a.paths.Script,
		"static/hands.js":    &a.paths.Hands,
		"static/keys.js":     &a.paths.Keys,
		"static/zoom.js":     &a.paths.Zoom,
	} {
		body, err := fs.ReadFile(own, name)
		if err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
		*link = a.add(hashedName(path.Base(name), body), body)
	}
	for file, link := range map[string]*string{
		htmxFile:                 &a.paths.HTMX,
		"htmx.org-*-hx-sse.min":  &a.paths.Events,
		"uplot-*-uPlot.iife.min": &a.paths.Plot,
		"uplot-*-uPlot.min":      &a.paths.PlotStyle,
	} {
		name, ok := builtFile(built, file)
		if !ok {
			continue
		}
		body, err := fs.ReadFile(built, name)
		if err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
		*link = a.add(path.Base(name), body)
	}
	return a, nil
}

// htmxFile is the file without which nothing updates in place.
const htmxFile = "htmx.org-*-htmx.min"

// builtFile finds a file of the manifest in built; its name there contains
// package, version, file and hash.
func builtFile(built fs.FS, file string) (name string, ok bool) {
	names, err := fs.Glob(built, "dist/"+file+"-??????????.*")
	if err != nil || len(names) == 0 {
		return "", false
	}
	return names[0], true
}

// add makes body available and returns the path to print into pages.
func (a *assets) add(name string, body []byte) string {
	a.files[name] = asset{body: body, contentType: contentTypes[path.Ext(name)]}
	return "/assets/" + name
}

// hashedName puts the hash of body into name: grl.css → grl-0123456789.css.
func hashedName(name string, body []byte) string {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:5]) + ext
}

// serve answers GET /assets/{name}. The name is only looked up, never opened.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[r.PathValue("name")]
	if !ok {
		http.Error(w, "No such asset. Reload the page: it names the present ones.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", fmt.Sprint(len(f.body)))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(f.body) // the reader went away; there is no one to tell
}
