package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grl/limiter/limitsfile"
)

func TestHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := open(t, w.dir)
	tests := []struct {
		name    string
		by      Author
		message string
		want    string // name, address, message
	}{
		{"plain", Author{"Ada L.", "ada@example.com"}, "m", "Ada L|ada@example.com|m"},
		{"new line and header", Author{"eve\nauthor root <r@x> 0 +0000", "e@x>\nparent 0"}, "m", "eveauthor root r@x 0 +0000|e@xparent 0|m"},
		{"empty", Author{}, "", "unknown|unknown@grl|"},
		{"only what git strips", Author{" .,:;<>\"\\' ", "<>"}, "m", "unknown|unknown@grl|m"},
		{"an option", Author{"--amend", "-e"}, "--all\n-F /etc/passwd", "--amend|-e|--all -F /etc/passwd"},
		{"shell", Author{"$(touch x)`id`", "a;b|c"}, "$(touch x)", "$(touch x)`id`|a;b|c|$(touch x)"},
		{"turned round and hidden", Author{"a\u202eb\u200b\x1b[31mc\x00", "a\x00b"}, "x\x1b[2J\x00y", "ab[31mc|ab|x[2Jy"},
		{"not UTF-8", Author{"\xffa\xfe", "\xff"}, "b\xff", "a|unknown@grl|b\ufffd"},
		{"long", Author{strings.Repeat("ü", 200_000), "x"}, "m", strings.Repeat("ü", 128) + "|x|m"},
		{"comment and scissors", Author{"a", "b"}, "# not a comment\n\n------------------------ >8 ------------------------\nbody", "a|b|# not a comment"},
	}
	base := r.fetch()
	for i, tt := range tests {
		made, err := r.Commit(t.Context(), base, changes(map[string]string{"shop.yaml": limits("shop", i+10)}), tt.by, tt.message)
		if err != nil {
			t.Fatalf("%s: Commit: %v", tt.name, err)
		}
		if got := person(t, w.remote, "log", "-1", "--format=%an|%ae|%s", string(made)); got != tt.want {
			t.Errorf("%s: the commit is by %q, want %q", tt.name, got, tt.want)
		}
		if got := person(t, w.remote, "log", "-1", "--format=%P %cn <%ce>", string(made)); got != string(base)+" grl configurator <rlc@grl>" {
			t.Errorf("%s: parent and committer %q", tt.name, got)
		}
		author, subject, err := r.Describe(t.Context(), made)
		if err != nil || strings.ContainsAny(author+subject, "\n\x00\x1b") {
			t.Errorf("%s: Describe = %q, %q, %v", tt.name, author, subject, err)
		}
		base = made
	}
	checkClean(t, w.dir)
}

func TestHostileFileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := t.TempDir()
	for kind, r := range map[string]rig{"git": open(t, w.dir), "directory": open(t, plain)} {
		base := r.fetch()
		before := r.files(base)
		for _, name := range []string{
			"", ".", "..", "../x.yaml", "a/../../x.yaml", "/etc/x.yaml", ".git/x.yaml", ".git/hooks/pre-push", "a/.git/x.yaml", ".hidden.yaml", "a//b.yaml", "./a.yaml",
			"x.txt", "a\x00.yaml", "a.yaml/", "x.yaml/../../y.yaml", "caf\xe9.yaml", "\xff/a.yaml",
		} {
			_, err := r.Commit(t.Context(), base, []limitsfile.Source{{Name: name, Data: []byte("x")}}, robot, "m")
			checkError(t, kind+": Commit of "+name, err, "no name of a limits file")
		}
		_, err := r.Commit(t.Context(), base, []limitsfile.Source{{Name: "a.yaml", Data: []byte("x")}, {Name: "a.yaml"}}, robot, "m")
		checkError(t, kind+": Commit", err, `"a.yaml" is to be written twice`)
		_, err = r.Commit(t.Context(), base, []limitsfile.Source{{Name: "a.yaml", Data: make([]byte, limitsfile.MaxFileBytes+1)}}, robot, "m")
		checkError(t, kind+": Commit", err, "a.yaml: found 16.0 MiB")

		for _, name := range []string{"-rf.yaml", "new\nline.yaml", "tab\t.yaml", "a b/'\"$x`.yaml", ":(top)x.yaml", "*.yaml", "a..b.yaml", "100644 x\ty.yaml"} {
			before[name] = limits("shop", 1)
			base = r.commit(base, map[string]string{name: before[name]})
			r.checkFiles(base, before)
		}
		for name := range before {
			base = r.commit(base, map[string]string{name: ""})
			delete(before, name)
			r.checkFiles(base, before)
		}
	}
	checkClean(t, w.dir)
}

func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"pre-push", "reference-transaction", "post-index-change", "post-checkout", "post-merge", "fsmonitor"} {
		name := filepath.Join(w.dir, ".git/hooks", hook)
		writeText(t, name, "#!/bin/sh\necho "+hook+" >>"+ran+"\n")
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, w.ann, map[string]string{"shop.yaml": limits("shop", 2)})
	person(t, w.dir, "config", "core.hooksPath", filepath.Join(w.dir, ".git/hooks"))
	person(t, w.dir, "config", "core.fsmonitor", filepath.Join(w.dir, ".git/hooks/fsmonitor"))
	r := open(t, w.dir)
	if _, err := os.Stat(ran); err == nil {
		if err := os.Remove(ran); err != nil { // those of git config
			t.Fatal(err)
		}
	}
	r.commit(r.fetch(), map[string]string{"cart.yaml": limits("cart", 3)})
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("hooks ran: %q", data)
	}
}

func TestErrorsTellNoPasswords(t *testing.T) {
	t.Parallel()
	const want = "fatal: cannot reach https://example.com/x.git;  git://h/"
	if got := shown("fatal: cannot reach https://ann:secret@example.com/x.git\n\x1bgit://tok%40en@h/\n"); got != want {
		t.Errorf("shown = %q, want %q", got, want)
	}
	if got := shown(strings.Repeat("ü", 1000)); len(got) > mostError || strings.Contains(got, "\ufffd") {
		t.Errorf("shown has %d bytes: %q", len(got), got)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "file")
	writeText(t, file, "x")
	damaged := clone(t, w.remote)
	writeText(t, filepath.Join(damaged, ".git/HEAD"), "")
	noGit := func(o *Options) { o.Git = "no-such-git" }
	tests := []struct {
		name   string
		o      Options
		option func(*Options)
		want   string
	}{
		{"nothing there", Options{Path: filepath.Join(file, "x")}, nil, "not a directory"},
		{"a file", Options{Path: file}, nil, "is no directory"},
		{"bare", Options{Path: w.remote}, nil, "work tree"},
		{"inside .git", Options{Path: filepath.Join(w.dir, ".git")}, nil, "work tree"},
		{"damaged", Options{Path: damaged}, nil, "not a git repository"},
		{"a checkout, and no git", Options{Path: w.dir}, noGit, "no-such-git"},
		{"name with a space", Options{Path: w.dir, Branch: "a b"}, nil, `"a b" is no name of a branch`},
		{"name that goes up", Options{Path: w.dir, Branch: "../../x"}, nil, "is no name of a branch"},
		{"name of a refspec", Options{Path: w.dir, Branch: "a:refs/heads/b"}, nil, "is no name of a branch"},
		{"name with a new line", Options{Path: w.dir, Branch: "a\nb"}, nil, "is no name of a branch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.option != nil {
				tt.option(&tt.o)
			}
			_, err := Open(t.Context(), tt.o)
			checkError(t, "Open", err, tt.want)
		})
	}
	r := open(t, w.dir)
	_, err := Open(t.Context(), Options{Path: w.dir})
	checkError(t, "a second Open", err, "another process has it open")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, w.dir)
}
