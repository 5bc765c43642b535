package web

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"grl/web/pagetest"
)

// What a page links to is there, under a name that changes with its content,
// to be kept for ever.
func TestAssetsAreHashedAndImmutable(t *testing.T) {
	a, err := newAssets(static, dist)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(Options{Backend: pagetest.Memory{}}, a)
	for url, want := range map[string]struct{ contentType, file string }{
		a.paths.Style:  {"text/css; charset=utf-8", "static/grl.css"},
		a.paths.Script: {"text/javascript; charset=utf-8", "static/live.js"},
		a.paths.Icon:   {"image/svg+xml", "static/favicon.svg"},
	} {
		r, body := get(t, h, url, false)
		if r.Header.Get("Content-Type") != want.contentType {
			t.Errorf("%s: Content-Type %q, want %q", url, r.Header.Get("Content-Type"), want.contentType)
		}
		if got := r.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", url, got)
		}
		file, err := os.ReadFile(want.file)
		if err != nil {
			t.Fatal(err)
		}
		if body != string(file) {
			t.Errorf("%s is not %s", url, want.file)
		}
	}
	if one, two := hashedName("a.css", []byte("1")), hashedName("a.css", []byte("2")); one == two {
		t.Errorf("two contents have the name %q", one)
	}
}

func TestAssetsBuiltSaysWhatIsEmbedded(t *testing.T) {
	names, err := dist.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	there := false
	for _, n := range names {
		there = there || strings.HasPrefix(n.Name(), "htmx.org-4.0.1-htmx.min-")
	}
	if got := AssetsBuilt(); got != there {
		t.Errorf("AssetsBuilt() = %v, htmx is embedded: %v", got, there)
	}
}

// Each file of the manifest that was built is served, and a page can name it.
func TestBuiltAssetsAreServed(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{
		"htmx.org-4.0.1-htmx.min-0123456789.js", "htmx.org-4.0.1-hx-sse.min-0123456789.js",
		"uplot-1.6.32-uPlot.iife.min-0123456789.js", "uplot-1.6.32-uPlot.min-0123456789.css",
	} {
		files["dist/"+name] = &fstest.MapFile{Data: []byte(name)}
	}
	a, err := newAssets(static, files)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(Options{Backend: pagetest.Memory{}}, a)
	for path, want := range map[string]string{
		a.paths.HTMX:      "htmx.org-4.0.1-htmx.min-0123456789.js",
		a.paths.Events:    "htmx.org-4.0.1-hx-sse.min-0123456789.js",
		a.paths.Plot:      "uplot-1.6.32-uPlot.iife.min-0123456789.js",
		a.paths.PlotStyle: "uplot-1.6.32-uPlot.min-0123456789.css",
	} {
		if path != "/assets/"+want {
			t.Errorf("path %q, want that of %s", path, want)
			continue
		}
		if r, body := get(t, h, path, false); r.StatusCode != 200 || body != want {
			t.Errorf("%s: status %d, %q", path, r.StatusCode, body)
		}
	}
}

func TestMissingOwnAssetIsAnError(t *testing.T) {
	if _, err := newAssets(fstest.MapFS{}, fstest.MapFS{}); err == nil {
		t.Error("no error without a stylesheet")
	}
}

// Our own files keep the policy that the pages set.
func TestStylesheetLoadsNothing(t *testing.T) {
	css, err := os.ReadFile("static/grl.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"@import", "url(http", "url(//", "url(\"http"} {
		if strings.Contains(string(css), bad) {
			t.Errorf("grl.css contains %s", bad)
		}
	}
}

func TestHeadHasNoBody(t *testing.T) {
	srv := httptest.NewServer(testHandler(t, pagetest.Memory{Rows: pagetest.Cells()}))
	defer srv.Close()
	r, err := srv.Client().Head(srv.URL + "/buckets")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != 200 || r.ContentLength <= 0 {
		t.Errorf("HEAD: status %d, length %d", r.StatusCode, r.ContentLength)
	}
}
