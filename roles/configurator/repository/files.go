package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"grl/limiter/limitsfile"
)

// Kinds of entries of a tree, as git writes their modes.
const (
	modeLink   = "120000"
	modeModule = "160000" // a commit of another repository
)

// blob is a file of a commit.
type blob struct{ id, mode string }

// files returns the limits files of a commit.
func (g *git) files(ctx context.Context, v Version) ([]limitsfile.Source, error) {
	if v == "" {
		return nil, nil
	}
	if !g.isVersion(v) {
		return nil, fmt.Errorf("%q is no version", v)
	}
	args := []string{"ls-tree", "-r", "-z", "--long", "--full-tree", string(v)}
	if g.prefix != "" {
		args = append(args, "--", g.prefix)
	}
	out, err := g.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	sizes, ids, err := g.parseTree(records(out))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	blobs, err := g.runWith(ctx, call{input: strings.NewReader(strings.Join(ids, "\n") + "\n")}, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	files, err := parseBlobs(sizes, blobs)
	if err != nil {
		return nil, fmt.Errorf("read files of %s: %w", v.Short(), err)
	}
	slices.SortFunc(files, func(a, b limitsfile.Source) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// records splits what git prints with -z.
func records(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// parseTree returns names, sizes and ids of the limits files in what ls-tree says,
// if limitsfile.ReadDir would read as much.
func (g *git) parseTree(entries []string) (sizes []limitsfile.Size, ids []string, err error) {
	var errs limitsfile.Errors
	for _, entry := range entries {
		meta, name, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(meta) // mode, kind, id, bytes
		if !ok || len(fields) != 4 {
			return nil, nil, fmt.Errorf("git ls-tree says %q", entry)
		}
		name = strings.TrimPrefix(name, g.prefix)
		switch {
		case !limitsfile.IsLimits(name) || fields[0] == modeModule:
			continue
		case !utf8.ValidString(name):
			errs = append(errs, notUTF8(name))
			continue
		case fields[0] == modeLink:
			errs = append(errs, &limitsfile.Error{File: name, Found: "a symbolic link", Expected: "a file"})
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("git ls-tree says %q", entry)
		}
		sizes, ids = append(sizes, limitsfile.Size{Name: name, Bytes: size}), append(ids, fields[2])
	}
	if more := limitsfile.Errors(nil); errors.As(limitsfile.CheckSizes(sizes), &more) {
		errs = append(errs, more...)
	}
	if len(errs) > 0 {
		return nil, nil, firstErrors(errs.Sorted())
	}
	return sizes, ids, nil
}

// parseBlobs reads what cat-file --batch answers.
func parseBlobs(asked []limitsfile.Size, answer []byte) ([]limitsfile.Source, error) {
	r := bufio.NewReader(bytes.NewReader(answer))
	files := make([]limitsfile.Source, 0, len(asked))
	for _, f := range asked {
		line, err := r.ReadString('\n') // ID blob BYTES
		fields := strings.Fields(line)
		if err != nil || len(fields) != 3 || fields[2] != strconv.FormatInt(f.Bytes, 10) {
			return nil, fmt.Errorf("%s: git cat-file says %q", f.Name, strings.TrimSpace(line))
		}
		data := make([]byte, f.Bytes)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := r.ReadByte(); err != nil { // ends the line
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		files = append(files, limitsfile.Source{Name: f.Name, Data: data})
	}
	return files, nil
}

// describe returns author and subject of a commit.
func (g *git) describe(ctx context.Context, v Version) (author, subject string, err error) {
	if v == "" {
		return "limits repository", "empty", nil
	}
	if !g.isVersion(v) {
		return "", "", fmt.Errorf("%q is no version", v)
	}
	out, err := g.line(ctx, "log", "-1", "--format=%an%x00%s", string(v))
	if err != nil {
		return "", "", err
	}
	author, subject, _ = strings.Cut(strings.ToValidUTF8(out, "\ufffd"), "\x00")
	return author, subject, nil
}
