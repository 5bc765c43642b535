package limitsfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/limiter/limitsfile"
)

const shop = "service: shop\nbuckets:\n  - {name: all, limit: {rps: 5}, behavior: deny}\n"

// put writes files below a new directory; a value "-> x" is a link to x.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, path, text)
	}
	return dir
}

func readNames(t *testing.T, dir string) []string {
	t.Helper()
	sources, err := limitsfile.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sources {
		name, err := filepath.Rel(dir, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	return got
}

func TestReadDir(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"empty directory", nil, nil},
		{"both extensions, in order", map[string]string{"b.yml": shop, "a.yaml": shop, "a/c.yaml": shop}, []string{"a.yaml", "a/c.yaml", "b.yml"}},
		{"other and hidden files", map[string]string{"README.md": "x", ".hidden.yaml": "x", ".git/a.yaml": "x", "a.yaml": shop, "a.yaml~": "x"}, []string{"a.yaml"}},
		{"mounted ConfigMap", map[string]string{
			"..2026_01_01/shop.yaml":   shop,
			"..2026_01_01/orders.yaml": shop,
			"..data":                   "-> ..2026_01_01",
			"shop.yaml":                "-> ..data/shop.yaml",
			"orders.yaml":              "-> ..data/orders.yaml",
		}, []string{"orders.yaml", "shop.yaml"}},
		{"two links to one file", map[string]string{"a.yaml": shop, "b.yaml": "-> a.yaml"}, []string{"a.yaml"}},
		{"linked directory and a circle", map[string]string{".real/a.yaml": shop, "link": "-> .real", ".real/back": "-> ..", ".real/self": "-> ."}, []string{"link/a.yaml"}},
		{"dangling link of another kind", map[string]string{"a": "-> nowhere"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readNames(t, put(t, tt.files))); diff != "" {
				t.Errorf("ReadDir (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadDirFollowsTheSwapOfAMount(t *testing.T) {
	dir := put(t, map[string]string{"..1/shop.yaml": shop, "..data": "-> ..1", "shop.yaml": "-> ..data/shop.yaml"})
	_, before, err := limitsfile.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	// As the kubelet does: a new directory, then a rename over the link.
	if err := os.Mkdir(filepath.Join(dir, "..2"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "..2", "shop.yaml"), strings.ReplaceAll(shop, "5", "6"))
	if err := os.Symlink("..2", filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	services, after, err := limitsfile.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := services[0].Buckets[0].LimitRPS; got != 6 {
		t.Errorf("limit after the swap = %v, want 6", got)
	}
	if before[0].Hash() == after[0].Hash() {
		t.Error("the hash did not change with the content")
	}
}

func TestReadDirErrors(t *testing.T) {
	if _, err := limitsfile.ReadDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadDir of nothing = %v, want fs.ErrNotExist", err)
	}
	dir := put(t, map[string]string{"a.yaml": shop, "dangling.yaml": "-> nowhere"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o666); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "sparse.yaml")
	write(t, big, "")
	if err := os.Truncate(big, 1<<40); err != nil {
		t.Fatal(err)
	}
	_, err := limitsfile.ReadDir(dir)
	want := dir + "/dangling.yaml: cannot be read: no such file or directory\n" +
		dir + "/pipe.yaml: found a named pipe, expected a file\n" +
		dir + "/sparse.yaml: found 1048576.0 MiB, expected at most 16 MiB"
	if err == nil || err.Error() != want {
		t.Errorf("ReadDir = %v, want\n%s", err, want)
	}
}

func TestIsLimitsAgreesWithReadDir(t *testing.T) {
	names := []string{
		"a.yaml", "b.yml", "c.YAML", "d.yaml~", "e.json", ".f.yaml", "sub/g.yaml", "sub/.h.yml", ".git/i.yaml", "sub/.j/k.yaml", "l..yaml", "yaml",
		"sub.d/m.yaml", "-n.yaml", "o\np.yaml",
	}
	files := make(map[string]string)
	var want []string
	for _, name := range names {
		files[name] = shop
		if limitsfile.IsLimits(name) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, readNames(t, put(t, files))); diff != "" {
		t.Errorf("ReadDir (-IsLimits +got):\n%s", diff)
	}
	if len(want) != 7 {
		t.Errorf("%d limits files: %q, want 7", len(want), want)
	}
}

func TestCheckSizes(t *testing.T) {
	const file, all = limitsfile.MaxFileBytes, limitsfile.MaxTotalBytes
	tests := []struct {
		name  string
		sizes []int64 // bytes, of files a, b, ...
		want  string
	}{
		{"none", nil, ""},
		{"all that may be", slices.Repeat([]int64{file}, all/file), ""},
		{"one too large", []int64{1, file + 1, 1}, "b: found 16.0 MiB, expected at most 16 MiB"},
		{"larger than any file", []int64{1 << 62}, "a: found 1048576.0 MiB, expected at most 16 MiB"},
		{"too much together", append(slices.Repeat([]int64{file}, all/file), 1), "e: found more than 64 MiB in all files up to this one, expected at most 64 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var files []limitsfile.Size
			for i, size := range tt.sizes {
				files = append(files, limitsfile.Size{Name: string(rune('a' + i)), Bytes: size})
			}
			got := ""
			if err := limitsfile.CheckSizes(files); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("CheckSizes(%v) = %q, want %q", tt.sizes, got, tt.want)
			}
		})
	}
}
