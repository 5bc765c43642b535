package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// remote returns the name of the remote that the branch is fetched from and pushed
// to: the one that its configuration names, else origin, else the only one; "":
// there is none.
func (g *git) remote(ctx context.Context) (string, error) {
	out, err := g.run(ctx, "config", "--get-regexp", "-z", `^(remote\..*\.url|branch\..*\.remote)$`)
	if err != nil && exitCode(err) != 1 { // 1: none is there
		return "", err
	}
	var names []string
	for _, record := range records(out) {
		key, value, _ := strings.Cut(record, "\n")
		if key == "branch."+g.branch+".remote" && value != "." {
			return value, nil
		}
		if name, ok := strings.CutPrefix(key, "remote."); ok {
			names = append(names, strings.TrimSuffix(name, ".url"))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(names) == 0:
		return "", nil
	case slices.Contains(names, "origin"):
		return "origin", nil
	case len(names) > 1:
		return "", fmt.Errorf("%s has the remotes %s: say which one with git config branch.%s.remote", g.top, strings.Join(names, ", "), g.branch)
	}
	return names[0], nil
}

// fetch takes in the branch of the remote.
func (g *git) fetch(ctx context.Context) (Version, error) {
	if err := g.settle(ctx); err != nil {
		return "", err
	}
	head, err := g.head(ctx)
	if err != nil {
		return "", err
	}
	remote, err := g.remote(ctx)
	if err != nil || remote == "" {
		return head, err
	}
	theirs, err := g.theirs(ctx, remote)
	if err != nil {
		return "", err
	}
	switch taken := g.taken(); {
	case theirs == "" && taken == "":
		return head, nil // nothing was pushed yet
	case theirs == "":
		return "", fmt.Errorf("branch %q, which was at %s, is gone from %s: push it again to go on with it", g.branch, taken.Short(), remote)
	case theirs == head: // also where people moved the branch to what the remote has
		return theirs, g.take(theirs)
	}
	if err := g.load(ctx, remote); err != nil {
		return "", err
	}
	if err := g.checkFollows(ctx, head, theirs, remote); err != nil {
		return "", err
	}
	if err := g.move(ctx, head, theirs); err != nil {
		return "", err
	}
	return theirs, g.take(theirs)
}

// theirs asks the remote for the commit of the branch; "": it has none.
func (g *git) theirs(ctx context.Context, remote string) (Version, error) {
	out, err := g.run(ctx, "ls-remote", "--quiet", "--", remote, g.ref())
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if name == g.ref() && g.isVersion(Version(id)) { // it answers with all that end so
			return Version(id), nil
		}
	}
	return "", nil
}

// load fetches the objects of the branch.
func (g *git) load(ctx context.Context, remote string) error {
	return g.marked(marker{}, func() error {
		_, err := g.run(ctx, "fetch", "--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--", remote, g.ref())
		return err
	})
}

// checkFollows returns an error if people lost or kept something that taking in
// the remote's commit would take away from them.
func (g *git) checkFollows(ctx context.Context, head, theirs Version, remote string) error {
	if taken := g.taken(); taken != "" {
		follows, err := g.follows(ctx, taken, theirs)
		if err != nil {
			return err
		}
		if !follows {
			return fmt.Errorf("the history of branch %[1]q was rewritten at %[2]s: %[3]s, which was taken in, is not in %[4]s; if that is meant, run git fetch %[2]s and git reset --hard %[4]s in %[5]s",
				g.branch, remote, taken.Short(), theirs.Short(), g.top)
		}
	}
	if head == "" {
		return nil
	}
	if follows, err := g.follows(ctx, head, theirs); err != nil || follows {
		return err
	}
	return g.checkUnpushed(ctx, head, theirs, remote)
}

// follows reports whether a commit is another one or comes after it.
func (g *git) follows(ctx context.Context, old, newer Version) (bool, error) {
	_, err := g.run(ctx, "merge-base", "--is-ancestor", string(old), string(newer))
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// checkUnpushed returns an error if head has commits of people that the remote has
// not. Those of a configurator may go: it computes anew.
func (g *git) checkUnpushed(ctx context.Context, head, theirs Version, remote string) error {
	out, err := g.run(ctx, "log", "-z", "--format=%ce%x09%h %s", string(head), "^"+string(theirs), "--")
	if err != nil {
		return err
	}
	commits := records(out)
	var kept []string
	for _, c := range commits {
		email, what, _ := strings.Cut(c, "\t")
		if email != ourEmail {
			kept = append(kept, shown(what))
		}
	}
	if len(kept) > 0 {
		return fmt.Errorf("%s has commits that are not at %s: %s; push them, or drop them with git reset --hard %s", g.top, remote, list(kept), theirs.Short())
	}
	g.opts.Log.WarnContext(ctx, "drops commits to limits that were never pushed; they are made anew", "commits", len(commits), "head", head.Short(), "remote", theirs.Short())
	return nil
}

// list returns the first few of names.
func list(names []string) string {
	const most = 5
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// taken returns the commit of the remote that was taken in last; "": none was.
func (g *git) taken() Version {
	text, err := os.ReadFile(g.state("taken"))
	if err != nil {
		return ""
	}
	id, branch, _ := strings.Cut(string(text), " ")
	if branch != g.branch || !g.isVersion(Version(id)) {
		return ""
	}
	return Version(id)
}

// take notes that a commit of the remote was taken in.
func (g *git) take(v Version) error {
	if g.taken() == v {
		return nil
	}
	if err := writeFile(g.state("taken"), []byte(string(v)+" "+g.branch), 0o600); err != nil {
		return errors.Join(errors.New("note what was taken in"), err)
	}
	return nil
}
